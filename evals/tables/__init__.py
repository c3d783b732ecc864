"""Correctness of SQL over tables."""
