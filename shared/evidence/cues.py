"""Converts cues, the times at which words of a recording are spoken, to text and back. `0:83.2 14:86` means
word 0 at 83.2 s and word 14 at 86 s.

Words are separated by white space. Pure.
"""

from collections.abc import Iterable, Sequence

Cue = tuple[int, float]
"""The index of the first word of a cue, from 0, and the time in seconds at which it is spoken."""


def cues_text(cues: Iterable[Cue]) -> str:
    """Convert cues to the text stored in the index, such as `0:83.2 14:86`."""
    return " ".join(f"{word}:{round(seconds, 1):g}" for word, seconds in cues)


def cues_of_part(cues: str, words: Sequence[str], part: Sequence[str], begin: int = 0) -> tuple[str, int]:
    """Return the cues of one part of a transcript, and the index of the part's first word in the whole
    transcript. Cue indexes count from the start of the part.

    Args:
        words: of the whole text.
        part: consecutive words of it; the cues are empty if they are not.
        begin: index from which to search.
    """
    place = next(
        (at for at in range(begin, len(words)) if list(words[at : at + len(part)]) == list(part)), None
    )
    if place is None:
        return "", begin
    all_cues = _read(cues)
    part_cues = [(max(word - place, 0), seconds) for word, seconds in all_cues if word < place + len(part)]
    first = max((at for at, (word, _) in enumerate(part_cues) if word == 0), default=0)
    return cues_text(part_cues[first:]), place


def seconds_at(cues: str, text: str, position: int) -> float | None:
    """Return the time in seconds at which the word at character offset `position` is spoken, or None if no
    cue precedes it.
    """
    before = text[:position]
    word = len(before.split()) - bool(before and not before[-1].isspace())
    return next((seconds for first, seconds in reversed(_read(cues)) if first <= word), None)


def _read(cues: str) -> list[Cue]:
    pairs = (cue.split(":") for cue in cues.split())
    return [(int(word), float(seconds)) for word, seconds in pairs]
