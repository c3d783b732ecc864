"""A run: its record, event log, working memory and deadline.

Pure: deadline, events, evidence, log_lines, revivals.
"""
