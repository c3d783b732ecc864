"""Ratings of answers and metrics of quality in use."""
