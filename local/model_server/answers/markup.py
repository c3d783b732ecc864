"""The markup of an answer: cite, figure and abstain tags, and text that cannot be mistaken for them. Pure."""

import re
from xml.sax.saxutils import escape

from local.model_server.text.passages import Passage

_LEADING_MARK = re.compile(r"^\s*(?:#{1,6}\s+|[-*•‣▪◦·–]\s*|\(?\d{1,2}[.)]\s+)")
_TAG_START = re.compile(r"<(?=[/\w])")
_LINE_BREAKS = {"\n": " ", "\r": " ", "\t": " "}


def cite(passage: Passage) -> str:
    """The citation tag: the quote is the passage letter by letter, escaped for an XML attribute."""
    return f'<cite doc_id="{attribute(passage.document.doc_id)}" quote="{attribute(passage.quote)}"/>'


def figure(block_id: str) -> str:
    """The tag that says where a picture belongs."""
    return f'<figure block_id="{attribute(block_id)}"/>'


def abstain(missing: str, next_step: str) -> str:
    """The tag that says that the documents do not hold the answer; it stands alone."""
    return f'<abstain missing="{attribute(missing)}" next_step="{attribute(next_step)}"/>'


def attribute(text: str) -> str:
    """Text escaped for a double-quoted XML attribute, on one line."""
    return escape(text, {'"': "&quot;", **_LINE_BREAKS})


def statement(passage: Passage) -> str:
    """The passage as a sentence of the answer: without list marks, and without what looks like a tag."""
    text = _LEADING_MARK.sub("", passage.reading).strip()
    return plain(text if text.endswith((".", "!", "?", ":", "…")) else f"{text}.")


def plain(text: str) -> str:
    """Text of a document, safe to stand in an answer next to tags."""
    return _TAG_START.sub("&lt;", text)


def table_cell(text: str) -> str:
    """Text for a cell of a Markdown table."""
    return plain(text).replace("|", "\\|")
