"""Measurement of the delay that one user's worst files cause for another user."""
