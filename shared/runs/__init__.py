"""A run: its record, event log, working memory and deadline.

Pure: deadline, events, run_store.
"""
