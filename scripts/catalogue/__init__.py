"""Descriptions of headers, limits, log events, run events and stores, for the tables in docs/. Tests compare
the names with the code.
"""
