"""Summaries of several documents: a map over windows of each, and two reduces."""
