"""Documents as users see them: ids, ingestion state, metadata, permissions, lists, figures and page views.

Pure: ids, open_work, page_models, requests, state, views.
"""
