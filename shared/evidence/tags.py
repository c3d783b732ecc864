"""Parses the tags that a model writes in its answer: citations, figures, gaps and follow-up questions. Pure.

The model writes Markdown with `<cite doc_id="…" quote="…"/>` or `<cite result="q1"/>` after each statement,
`<figure block_id="…"/>` where a picture belongs, `<gap missing="…" next_step="…"/>` for information missing
from the documents, and `<follow_up question="…"/>` after the answer. A tag may be split at any character; any
other `<` is text.
"""

import html
import re
from dataclasses import dataclass
from html.entities import html5

_NAMES = ("cite", "figure", "gap", "follow_up")
_TAG_STARTS = tuple(f"<{slash}{name}" for name in _NAMES for slash in ("", "/"))
_START = re.compile(rf"</?(?:{'|'.join(_NAMES)})(?![\w-])", re.IGNORECASE)
_START_SURELY = re.compile(rf"</?(?:{'|'.join(_NAMES)})(?=[^\w-])", re.IGNORECASE)
_MAX_TAG_CHARS = 4000  # A longer "tag" was never closed, so it is treated as text.
_MAX_START_CHARS = max(map(len, _TAG_STARTS))
_MIN_START_CHARS = min(map(len, _TAG_STARTS))

# Models sometimes put a quotation mark inside a value, so a value ends only at a mark followed by another
# attribute or the end of the tag. Possessive quantifiers prevent backtracking.
_VALUE_ENDS = r"""(?:[\s,]+\w+\s*=\s*["'“”„]|\s*/?\s*>)"""
_VALUE = "|".join(
    f"{opening}(?:[^{closing}]|[{closing}](?!{_VALUE_ENDS}))*+[{closing}](?={_VALUE_ENDS})"
    for opening, closing in (('"', '"'), ("'", "'"), ("[“”„]", "“”"))
)
_TAG = re.compile(
    rf"""<(/?)({"|".join(_NAMES)})(?![\w-])((?:[^<>=]|=\s*+(?:{_VALUE})|=(?!\s*["'“”„]))*+)>""", re.IGNORECASE
)
_ATTRIBUTE = re.compile(rf"""(\w+)\s*=\s*(?:({_VALUE})|([^\s"'“”„<>=]+))""")
_OPEN_ATTRIBUTE = re.compile(
    r"""(\w+)\s*=\s*["'“”„](.*?)(?:["'”“]?\s*/?\s*\Z|["'”“][\s,]+(?=\w+\s*=))""", re.DOTALL
)
_ENTITY = re.compile(r"&(?:#(?:\d{1,7}|[xX][0-9a-fA-F]{1,6})|([A-Za-z][A-Za-z0-9]{0,31}));")


@dataclass(frozen=True)
class Text:
    """A piece of the answer between tags."""

    text: str


@dataclass(frozen=True)
class CiteTag:
    """A citation of a document or query result as the model wrote it, not yet verified."""

    doc_id: str = ""
    quote: str = ""
    result: str = ""


@dataclass(frozen=True)
class FigureTag:
    """A picture that the model requests. Its id has not been checked."""

    block_id: str


@dataclass(frozen=True)
class GapTag:
    """A gap tag, in which the model states that the documents lack some information."""

    missing: str
    next_step: str


@dataclass(frozen=True)
class FollowUpTag:
    """A follow-up question that the model suggests. The question is empty if its tag is malformed or
    incomplete.
    """

    question: str


Piece = Text | CiteTag | FigureTag | GapTag | FollowUpTag


def read_tags(text: str, *, at_end: bool) -> tuple[list[Piece], str]:
    """Parse `text` into texts and tags. Return them, and the unparsed rest that may be the start of a tag.

    Prepend the rest to the next piece of the stream. The concatenated `Text` pieces are the answer without
    tags, however the stream was split.

    Args:
        at_end: nothing follows, so there is no rest. Text after the first `>` of an unclosed tag is kept.
    """
    pieces: list[Piece] = []
    text_start = position = 0
    while (position := text.find("<", position)) >= 0:
        if not _may_start_tag(text, position, at_end=at_end):
            position += 1
            continue
        tag = _tag_at(text, position, at_end=at_end)
        if tag is None:
            break
        tag_pieces, end = tag
        if end > position:
            pieces += [Text(text[text_start:position]), *tag_pieces]
            text_start = end
        position = max(end, position + _MIN_START_CHARS)
    certain = len(text) if position < 0 else position
    return _merge_texts([*pieces, Text(text[text_start:certain])]), text[certain:]


def _may_start_tag(text: str, position: int, *, at_end: bool) -> bool:
    if _START.match(text, position):
        return True
    rest = text[position : position + _MAX_START_CHARS].lower()
    is_cut_off = position + len(rest) == len(text)
    return is_cut_off and not at_end and any(start.startswith(rest) for start in _TAG_STARTS)


def _tag_at(text: str, position: int, *, at_end: bool) -> tuple[list[Piece], int] | None:
    """Parse the tag at `position`. Return its pieces and its end offset, or None if more input is needed.

    If there is no tag, the end is at most `position`. Looks ahead at most `_MAX_TAG_CHARS`, so that the
    result doesn't depend on how much input has arrived.
    """
    limit = position + _MAX_TAG_CHARS
    tag = _TAG.match(text, position, limit)
    next_start = _START_SURELY.search(text, position + _MIN_START_CHARS, limit)
    if tag is not None and (next_start is None or tag.end() <= next_start.start()):
        return _read_tag(tag), tag.end()
    if next_start is not None:
        return _read_broken_tag(text[position : next_start.start()]), next_start.start()
    if len(text) >= limit:
        closed = text.find(">", position, limit)
        return _read_broken_tag(text[position : closed + 1]), closed + 1
    return (_read_broken_tag(text[position:]), len(text)) if at_end else None


def _read_tag(tag: re.Match[str]) -> list[Piece]:
    if tag[1]:
        return []
    values = {
        match[1].lower(): match[2][1:-1] if match[2] is not None else match[3].removesuffix("/")
        for match in _ATTRIBUTE.finditer(tag[3] + ">")
    }
    return [_piece(tag[2], values)]


def _read_broken_tag(region: str) -> list[Piece]:
    """Parse a tag with unbalanced quotation marks as far as possible. Return the tag and the text after its
    `>`.
    """
    tag, _, text = region.partition(">")
    if tag.startswith("</"):
        return [Text(text)]
    values = {match[1].lower(): match[2] for match in _OPEN_ATTRIBUTE.finditer(tag)}
    piece = _piece(tag[1:], values)
    if isinstance(piece, FollowUpTag):
        piece = FollowUpTag("")  # A malformed tag may have cut off the question.
    return [piece, Text(text)]


def _piece(name: str, values: dict[str, str]) -> Piece:
    # Only entities with a semicolon are decoded: `?a=1&copy=2` is part of a URL, not a copyright sign.
    read = {key: _ENTITY.sub(_character, value).strip() for key, value in values.items()}
    if name.lower().startswith("gap"):
        return GapTag(missing=read.get("missing", ""), next_step=read.get("next_step", ""))
    if name.lower().startswith("figure"):
        return FigureTag(block_id=read.get("block_id", ""))
    if name.lower().startswith("follow_up"):
        return FollowUpTag(question=read.get("question", ""))
    return CiteTag(doc_id=read.get("doc_id", ""), quote=read.get("quote", ""), result=read.get("result", ""))


def _character(entity: re.Match[str]) -> str:
    return html5.get(f"{entity[1]};", entity[0]) if entity[1] else html.unescape(entity[0])


def _merge_texts(pieces: list[Piece]) -> list[Piece]:
    """Merge adjacent texts into one and drop empty texts."""
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if isinstance(piece, Text) and isinstance(last, Text):
            joined[-1] = Text(last.text + piece.text)
        elif piece != Text(""):
            joined.append(piece)
    return joined
