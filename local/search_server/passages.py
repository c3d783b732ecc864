"""Sentences of a text, and marks around the words that match. Pure."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from local.search_server import analyzers

MAX_PASSAGE_CHARS: Final = 400
_BREAK: Final = re.compile(r"(?<=[.!?…])\s+|\n+")


def passages(text: str) -> Iterator[str]:
    """Sentences in order, stripped; a very long one is cut between words."""
    for sentence in _BREAK.split(text):
        rest = sentence.strip()
        while len(rest) > MAX_PASSAGE_CHARS:
            cut = rest.rfind(" ", 0, MAX_PASSAGE_CHARS)
            cut = cut if cut > 0 else MAX_PASSAGE_CHARS
            yield rest[:cut]
            rest = rest[cut:].strip()
        if rest:
            yield rest


def terms_of(text: str, analyzer_name: str) -> list[str]:
    return analyzers.analyzer(analyzer_name).analyze(text)


def mark(
    text: str, analyzer_name: str, matches: Callable[[str], bool], tags: tuple[str, str]
) -> tuple[str, set[str]]:
    """The text with tags around each matching word, and the terms that matched."""
    pieces: list[str] = []
    found: set[str] = set()
    end = 0
    for token in analyzers.analyzer(analyzer_name).pre_tokenize(text).tokens:
        if matches(token.text):
            found.add(token.text)
            start, stop = token.char_offset_from, token.char_offset_to
            pieces += (text[end:start], tags[0], text[start:stop], tags[1])
            end = stop
    return "".join(pieces) + text[end:], found


def best_marked(
    text: str, analyzer_name: str, matches: Callable[[str], bool], tags: tuple[str, str], limit: int
) -> list[str]:
    """At most `limit` passages with matches, the ones with most different terms first."""
    marked = [mark(passage, analyzer_name, matches, tags) for passage in passages(text)]
    hits = [(passage, found) for passage, found in marked if found]
    hits.sort(key=lambda one: -len(one[1]))
    return [passage for passage, _ in hits[:limit]]
