"""From a blob to a searchable document, and back.

`accepting` claims a document, `reading` parses it in a worker process (`parsers/`), `captioning` and
`describing` ask models, `writing` updates both indexes, `closing` ends the claim. `uploads` and `changes`
are what people do; `audit` and `reconciliation` repair what events missed.

Pure: chunking, parsers.pdf_drawings, parsers.pdf_forms, parsers.pdf_geometry, parsers.pdf_headings,
parsers.pdf_lines, parsers.pdf_tables, quarantine.
"""
