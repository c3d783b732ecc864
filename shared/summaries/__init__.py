"""Summaries of several documents: a map over the windows of each document, then two reduces.

`summaries` starts and shows a summary, `steps` performs the steps of its orchestration, `model_calls` calls
the model, `findings` verifies its output, `result` renders the summary, and `store` holds all data.

Pure: budget, models.
"""
