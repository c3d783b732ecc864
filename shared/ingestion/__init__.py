"""From a blob to a searchable document, and back.

Each activity is one function: `acceptance` claims the document (`claims`), `parse_document` parses it in a
worker process (`parsers/`), `metadata` and `captions` ask models, `indexing` says which blocks are new and
updates both indexes; `steps` ends it. `uploads` and `changes` are what people do; `audit` and
`reconciliation` repair what events missed.

Pure: chunking, parsers.pdf_content, parsers.pdf_drawings, parsers.pdf_forms, parsers.pdf_furniture,
parsers.pdf_geometry, parsers.pdf_headings, parsers.pdf_lines, parsers.pdf_tables, parsers.pdf_unruled.
"""
