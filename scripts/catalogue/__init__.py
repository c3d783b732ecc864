"""Descriptions of names that the code only mentions, for the tables in docs/. Tests compare the names with
the code.
"""
