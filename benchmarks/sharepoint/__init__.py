"""First synchronisation of a SharePoint library beside the ingestion of the same files from blobs."""
