"""A document as people see it: its state, metadata, permissions, rows, figures and page views.

Pure: ids, page_models, requests, state.
"""
