"""Ingestion: make the files in blob storage searchable, keep their index entries up to date, and remove them.

Each activity is one function: `acceptance` looks at the row of the document (`task`), `parse_document` parses
it in a worker process (`parsers/`), `metadata` and `captions` call models, `indexing` plans and writes
both indexes, and `steps` ends the ingestion. `uploads` and `changes` are actions of users; `audit`
and `reconciliation` repair missed events.

Pure: chunking, parsers.pdf_content, parsers.pdf_drawings, parsers.pdf_forms, parsers.pdf_furniture,
parsers.pdf_geometry, parsers.pdf_headings, parsers.pdf_lines, parsers.pdf_tables, parsers.pdf_unruled.
"""
