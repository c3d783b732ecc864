"""Descriptions for the tables in docs/ of names for which the code has no description. Tests compare the
names with the code.
"""
