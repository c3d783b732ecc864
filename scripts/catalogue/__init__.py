"""Texts of the tables in docs/ about names that the code only mentions. Tests compare them with the code."""
