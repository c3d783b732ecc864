"""Reading an answer while it is written: clean text, citation tags, abstention. Pure, incremental.

The model writes Markdown with `<cite doc_id="…" quote="…"/>` after each statement, or one
`<abstain missing="…" next_step="…"/>`. A tag may arrive cut at any character; any other `<` is text.
"""

import html
import re
from dataclasses import dataclass, field

_TAG_STARTS = ("<cite", "</cite", "<abstain", "</abstain")
_MAX_TAG_CHARS = 4000  # a longer "tag" is an unclosed quotation mark: give it up as text
_TAG = re.compile(r"<(/?)(cite|abstain)\b(.*?)/?>\Z", re.DOTALL)
# A quotation mark inside a value is the model's slip; the value ends at one that is followed by
# another attribute or the end of the tag.
_ATTRIBUTE = re.compile(r'(\w+)\s*=\s*"(.*?)"(?=\s+\w+\s*=\s*"|\s*\Z)', re.DOTALL)
_TAG_END = re.compile(r'"\s*/?>|<(?:/?)(?:cite|abstain)\s*/?>')


@dataclass(frozen=True)
class Text:
    """Text to show."""

    text: str


@dataclass(frozen=True)
class CiteTag:
    """A citation as the model wrote it; nothing about it has been checked."""

    doc_id: str
    quote: str


@dataclass(frozen=True)
class AbstainTag:
    """The model says that the documents do not hold the answer."""

    missing: str
    next_step: str


Piece = Text | CiteTag | AbstainTag


@dataclass
class CiteParser:
    """Feed it deltas; it gives pieces as soon as they are certain.

    The concatenated `Text` pieces are the answer without any tag, whatever the cuts between deltas.
    """

    _held: str = field(default="")

    def feed(self, delta: str) -> list[Piece]:
        """Pieces that have become certain with this delta."""
        self._held += delta
        pieces: list[Piece] = []
        while self._held:
            start = self._held.find("<")
            if start != 0:
                cut = len(self._held) if start < 0 else start
                pieces.append(Text(self._held[:cut]))
                self._held = self._held[cut:]
            elif not self._take_tag(pieces):
                break
        return _joined(pieces)

    def finish(self) -> list[Piece]:
        """What is left when the model has ended: a tag that never closed is dropped, other text is given."""
        held, self._held = self._held, ""
        return [] if not held or _starts_tag(held) else [Text(held)]

    def _take_tag(self, pieces: list[Piece]) -> bool:
        """Consume what stands at the front, a tag or a plain `<`; False when more text must come first."""
        held = self._held
        if not _starts_tag(held):
            if any(start.startswith(held) for start in _TAG_STARTS):
                return False
            pieces.append(Text("<"))
            self._held = held[1:]
            return True
        end = _TAG_END.search(held)
        if end is None:
            if len(held) <= _MAX_TAG_CHARS:
                return False
            pieces.append(Text("<"))
            self._held = held[1:]
            return True
        pieces.extend(_read_tag(held[: end.end()]))
        self._held = held[end.end() :]
        return True


def _starts_tag(held: str) -> bool:
    return any(
        held.startswith(start) and not held[len(start) : len(start) + 1].isalnum() for start in _TAG_STARTS
    )


def _read_tag(tag: str) -> list[Piece]:
    match = _TAG.match(tag)
    if match is None or match[1]:
        return []
    values = {name: html.unescape(value).strip() for name, value in _ATTRIBUTE.findall(match[3])}
    if match[2] == "abstain":
        return [AbstainTag(missing=values.get("missing", ""), next_step=values.get("next_step", ""))]
    return [CiteTag(doc_id=values.get("doc_id", ""), quote=values.get("quote", ""))]


def _joined(pieces: list[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if isinstance(piece, Text) and isinstance(last, Text):
            joined[-1] = Text(last.text + piece.text)
        else:
            joined.append(piece)
    return joined
