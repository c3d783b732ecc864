"""Search over blocks and documents: index definitions, queries, ranking, permission filters and migration.

`schema` and `migration` define and move indexes; `secured_index` is the only way to query one, and checks
results against `document_rows`. `blocks` searches for blocks with `block_requests`; `rankings` and
`ranking_merge` order the results by `fusion`, and `semantic_ranker` or `reranking` may reorder them.
`block_reading` reads known blocks, and `documents` searches for documents. `keyword_query` writes queries,
and `terms`, `document_names` and `document_series` recognise the names of documents.

Pure: document_names, document_series, filters, fusion, metadata_text, schema, spelling.
"""
