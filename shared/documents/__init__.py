"""Documents as shown to users: state, metadata, permissions, rows, figures and page views.

Pure: ids, open_work, page_models, requests, state.
"""
