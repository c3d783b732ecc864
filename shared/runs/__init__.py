"""A run: its record, event log, working memory and deadline.

Pure: deadline, events, log_lines.
"""
