"""Runs: records, journals, files, deadlines and agent definitions.

Pure modules: agents, events, evidence, log_lines, revivals.
"""
