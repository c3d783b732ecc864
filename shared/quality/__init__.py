"""Ratings of answers, and quality metrics from real use."""
