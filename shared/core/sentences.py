"""Splitting text into sentences and words. Pure, and lossless: the pieces joined by blanks are the text."""

import re
from collections.abc import Iterator

# A sentence ends at . ! ? or … (and closing quotes or brackets), followed by white space and something that
# can begin a sentence. Lines of a table or a list end at their line end.
_END = re.compile(
    r"(?:(?<=[.!?…])|(?<=[.!?…][\"'”’»)\]]))\s+(?=[\"'“‘„«(\[]?[A-ZÀ-ÖØ-ÞĀ-Ž0-9§•–-])|\n+|(?<=[。！？])"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|No|Nos|Nr|Fig|Figs|Tab|Abb|Eq|Sec|Ch|Vol|pp|p|cf|vs|approx|Art|Abs|"
    r"Inc|Ltd|Co|Corp|e\.g|i\.e|z\.B|d\.h|u\.a|bzw|ca|inkl|et al|Jan|Feb|Apr|Aug|Sept|Sep|Oct|Nov|Dec)"
    r"|\b[A-Z]|(?:^|\s)\d{1,2})\.$"
)

_LONGEST_ABBREVIATION = 12  # characters, with what stands before it


def split_sentences(text: str) -> list[str]:
    """The sentences of `text`, white space at their ends dropped, empty ones left out."""
    return [sentence for sentence in _joined_at_abbreviations(_END.split(text)) if sentence]


def sentence_ends(text: str) -> list[int]:
    """Where sentences of `text` end; its own end is one only behind a sign that ends a sentence."""
    found = [end.start() for end in _END.finditer(text)]
    closed = text.rstrip()
    if closed and closed.rstrip("\"'”’»)]*_")[-1:] in tuple(".!?…。！？"):
        found.append(len(closed))
    return [end for end in found if end and not _ABBREVIATION.search(text[:end][-_LONGEST_ABBREVIATION:])]


def split_words(text: str) -> list[str]:
    """The words of `text`; scripts without blanks come in runs of at most 40 characters."""
    return [word[start : start + 40] for word in text.split() for start in range(0, len(word), 40)]


def _joined_at_abbreviations(pieces: list[str]) -> Iterator[str]:
    held = ""
    for piece in pieces:
        held = f"{held} {piece.strip()}".strip()
        if not _ABBREVIATION.search(held):
            yield held
            held = ""
    yield held
