"""Documents as shown to users: state, metadata, permissions, rows, figures and page views.

Pure: ids, page_models, requests, state.
"""
