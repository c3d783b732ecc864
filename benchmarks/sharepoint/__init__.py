"""Comparison of a SharePoint library's first synchronisation with the ingestion of the same files from
blobs.
"""
