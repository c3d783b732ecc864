"""Follow-up questions proposed after an answer, about sections that it doesn't quote."""

import re
from collections.abc import Iterator, Sequence
from html import unescape

from local.model_server.prompt_reader import Document
from local.model_server.text.passages import attribute
from local.model_server.text.words import detect_language, topic_stems

_MOST = 2
_MAX_HEADING_CHARS = 40
_NUMBERING = re.compile(r"^[\d.]+\s+")
_QUOTE = re.compile(r'<cite doc_id="([^"]*)" quote="([^"]*)"/>')
_ASKING = {True: "Was steht in {} zu „{}“?", False: "What does {} say about “{}”?"}


def next_questions(question: str, answer: str, documents: Sequence[Document]) -> str:
    """Return <follow_up> tags for at most two questions about the cited documents.

    Empty if the answer cites nothing or names a gap.
    """
    quotes = [(unescape(doc_id), unescape(quote)) for doc_id, quote in _QUOTE.findall(answer)]
    if not quotes or "<gap" in answer:
        return ""
    asking = _ASKING[detect_language(question) == "de"]
    asked = {*topic_stems(question)}
    cited = {doc_id for doc_id, _ in quotes}
    headings = (
        (document.filename, heading)
        for document in documents
        if document.doc_id in cited and document.filename
        for heading in _unused_headings(
            document, [quote for doc_id, quote in quotes if doc_id == document.doc_id]
        )
        if not asked & {*topic_stems(heading)}
    )
    texts = [asking.format(*one) for one in dict.fromkeys(headings)][:_MOST]
    return "".join(f'\n\n<follow_up question="{attribute(text)}"/>' for text in texts)


def _unused_headings(document: Document, quotes: Sequence[str]) -> Iterator[str]:
    """Yield the headings of sections that contain none of the quotes, without their numbering."""
    used = {
        block.heading
        for block in document.blocks
        if any(quote in " ".join(block.text.split()) for quote in quotes)
    }
    for block in document.blocks:
        heading = _NUMBERING.sub("", block.heading.rpartition(" > ")[2].strip())
        if block.heading not in used and 2 < len(heading) <= _MAX_HEADING_CHARS:
            yield heading
