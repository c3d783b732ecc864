"""Summaries of several documents: a map over windows of each document, and two reduces.

`summaries` begins and shows a summary, `steps` does the work of its orchestration, `model_calls` asks the
model, `findings` proves what it says, `result` writes it up, and `store` holds all of it.

Pure: budget, models.
"""
