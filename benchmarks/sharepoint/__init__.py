"""Compares the first synchronisation of a SharePoint library with the ingestion of the same files from
blobs.
"""
