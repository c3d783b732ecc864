"""Evaluation of SQL queries over tables."""
