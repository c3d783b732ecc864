"""What an answer is proved with.

`document_prompt` renders documents for a model, `cite_parser` reads its answer while it is written,
`quotes` and `citations` prove what it cites, and `reader_text` makes model text safe to show.

Pure: cite_parser, messages, quote_places, quotes, reader_text, text.
"""
