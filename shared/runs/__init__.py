"""A run: its record, journal, files and deadline, and the agent that was asked.

Pure: agents, events, evidence, log_lines, revivals.
"""
