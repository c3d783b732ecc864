"""Citations of answers, and the checks of quotations, numbers and figures against the evidence.

`document_prompt` renders documents for a model, `tags` parses the tags of its answer, `alignment` and
`metadata_proof` locate what it cites, `citations` numbers and formats it (a recording at its cue, `cues`, and
with the links of `source_links`), `repairs` asks for quotations that failed, `reader_text` sanitises model
text, and `untrusted_text` sanitises names chosen by other people.

Pure: alignment, block_text, cues, messages, metadata_proof, number_format, number_proof, number_words,
quote_places, reader_text, source_links, tags, text, untrusted_text, words.
"""
