"""Runs, which answer questions: records, journals, files, deadlines and agent definitions.

Pure: agents, events, evidence, log_lines, provenance, revivals.
"""
