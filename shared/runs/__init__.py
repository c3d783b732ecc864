"""A run: its record, event log, working memory and deadline, and the agent that was asked.

Pure: agents, events, evidence, log_lines, revivals.
"""
