"""The search indexes, from schema to ranked hits.

`schema` and `migration` define and move an index; `secured_index` is the only way to query one, and checks
what it finds against `document_rows`; `blocks` and `documents` search, `fusion` and `reranking` order what
they find.

Pure: document_names, filters, fusion, metadata_text, schema.
"""
