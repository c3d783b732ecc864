"""Search over blocks and documents: index definitions, queries, ranking, permission filters and migration.

`schema` and `migration` define and move indexes; `secured_index` is the only way to query one, and checks
results against `document_rows`; `blocks` and `documents` search, and `fusion` and `reranking` order the
results.

Pure: document_names, filters, fusion, metadata_text, schema.
"""
