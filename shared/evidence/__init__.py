"""What an answer is proved with.

`document_prompt` renders documents for a model, `cite_parser` reads its answer while it is written,
`alignment` and `metadata_proof` find what it cites, `citations` numbers and shows it, a recording at its cue
(`cues`), `repairs` asks for what was not found, `reader_text` makes model text safe to show, and
`untrusted_text` the names that others gave.

Pure: alignment, cite_parser, cues, messages, metadata_proof, quote_places, reader_text, text,
untrusted_text, words.
"""
