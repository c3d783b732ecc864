"""Measures how much one user's most expensive files delay another user."""
