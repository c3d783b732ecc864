"""Generates near misses: sentences of a block with one change that makes them false quotations. Pure.

The changes are independent of the app's comparison: words, numbers, units, names and negations.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from evals.quotes.blocks import SourceBlock

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|\n+")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?")
_UNITS = {
    "%": "‰", "percent": "per mille", "million": "billion", "billion": "million", "$": "€", "days": "weeks",
    "day": "week", "weeks": "days", "months": "years", "month": "year", "years": "months", "year": "month",
    "hours": "minutes", "minutes": "hours", "km": "m", "kilometres": "metres", "miles": "km", "mi": "km",
    "m": "cm", "feet": "inches", "ft": "in", "kg": "g", "lb": "kg", "mm": "cm", "MHz": "GHz", "GB": "MB",
}  # fmt: skip
_UNIT = re.compile(
    rf"(?<=\d )(?:{'|'.join(unit for unit in _UNITS if unit.isalpha())})\b|(?<=\d)\s?%|\$(?=\s?\d)"
)
_NEGATION = re.compile(r"\b(?:not|no|never|without|nor|neither|none|cannot)\b ?", re.IGNORECASE)
_VERB = re.compile(r"\b(?:is|are|was|were|will|may|must|shall|can|has|have|should|would)\b")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{3,}\b")
_POWER = re.compile(r"(?<![\d.,])\d{2,3}[23](?![\d.,%])")
_SUPERSCRIPT = {"2": "²", "3": "³"}
_MIN_WORDS, _MAX_WORDS = 6, 60
# Maximum number of words dropped on either side of a negation.
_MAX_REACH = 2

Change = Callable[[str, random.Random], str | None]
"""Returns the sentence with one change, or None if it contains nothing that can be changed this way."""


@dataclass(frozen=True)
class NearMiss:
    """An altered quotation that the app must reject."""

    kind: str
    quote: str
    block: str


def near_misses(blocks: Sequence[SourceBlock], per_kind: int, seed: int = 1) -> list[NearMiss]:
    """Return up to `per_kind` near misses of each kind. The same blocks and seed give the same result."""
    chance = random.Random(seed)
    shuffled = list(blocks)
    chance.shuffle(shuffled)
    names = [name for block in shuffled for name in _NAME.findall(block.text)]
    kinds = {kind: _change(kind, shuffled, change, chance) for kind, change in _CHANGES.items()}
    kinds["name"] = _change("name", shuffled, lambda text, by: _rename(text, by, names), chance)
    kinds["other_document"] = _from_two_documents(shuffled)
    kinds["wrong_order"] = _in_wrong_order(shuffled, chance)
    return [
        miss for candidates in kinds.values() for _, miss in zip(range(per_kind), candidates, strict=False)
    ]


def _change(
    kind: str, blocks: Sequence[SourceBlock], change: Change, chance: random.Random
) -> Iterator[NearMiss]:
    for block in blocks:
        for sentence in _sentences(block.text):
            quote = change(sentence, chance)
            if quote is not None and not _is_held(quote, block.text):
                yield NearMiss(kind, quote, block.text)
                break


def _sentences(text: str) -> list[str]:
    """Return the sentences of suitable length that occur exactly once in the text."""
    sentences = (sentence.strip() for sentence in _SENTENCE.split(text))
    return [
        one
        for one in sentences
        if _MIN_WORDS <= len(one.split()) <= _MAX_WORDS and text.count(one) == 1 and "|" not in one
    ]


def _is_held(quote: str, text: str) -> bool:
    """Return whether the altered text happens to occur in the block, for example in a similar row. It would
    then be a correct quotation.
    """
    return "…" not in quote and " ".join(_WORD.findall(quote)) in " ".join(_WORD.findall(text))


def _other_digit(text: str, chance: random.Random) -> str | None:
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return None
    number = chance.choice(numbers)
    place = chance.choice([at for at in range(*number.span()) if text[at].isdigit()])
    digit = chance.choice([digit for digit in "123456789" if digit != text[place]])
    return text[:place] + digit + text[place + 1 :]


def _other_unit(text: str, chance: random.Random) -> str | None:
    units = list(_UNIT.finditer(text))
    if not units:
        return None
    unit = chance.choice(units)
    return text[: unit.start()] + _UNITS[unit[0].strip()] + text[unit.end() :]


def _rename(text: str, chance: random.Random, names: Sequence[str]) -> str | None:
    matches = list(_NAME.finditer(text))
    other = chance.choice(names)
    if not matches or other in text:
        return None
    name = chance.choice(matches)
    return text[: name.start()] + other + text[name.end() :]


def _negate(text: str, chance: random.Random) -> str | None:
    verbs = [verb for verb in _VERB.finditer(text) if not _NEGATION.match(text, verb.end() + 1)]
    if not verbs:
        return None
    verb = chance.choice(verbs)
    return f"{text[: verb.end()]} not{text[verb.end() :]}"


def _without_negation(text: str, chance: random.Random) -> str | None:
    matches = list(_NEGATION.finditer(text))
    if not matches:
        return None
    negation = chance.choice(matches)
    return (text[: negation.start()] + text[negation.end() :]).strip()


def _elided_negation(text: str, chance: random.Random) -> str | None:
    words = text.split()
    places = [place for place, word in enumerate(words) if _NEGATION.fullmatch(word.strip(".,;:()"))]
    if not places:
        return None
    place = chance.choice(places)
    before, after = chance.randint(0, _MAX_REACH), chance.randint(0, _MAX_REACH)
    left, right = words[: max(0, place - before)], words[place + 1 + after :]
    # Skip the sentence if only a fragment would remain on one side.
    return " ".join((*left, "…", *right)) if len(left) >= _MAX_REACH and len(right) >= _MAX_REACH else None


def _raise_number(text: str, chance: random.Random) -> str | None:
    matches = list(_POWER.finditer(text))
    if not matches:
        return None
    number = chance.choice(matches)
    last = number.end() - 1
    return text[:last] + _SUPERSCRIPT[text[last]] + text[last + 1 :]


_CHANGES: dict[str, Change] = {
    "digit": _other_digit,
    "unit": _other_unit,
    "negation_added": _negate,
    "negation_dropped": _without_negation,
    "negation_elided": _elided_negation,
    "power": _raise_number,
}


def _from_two_documents(blocks: Sequence[SourceBlock]) -> Iterator[NearMiss]:
    for one, other in zip(blocks[::2], blocks[1::2], strict=False):
        mine, theirs = _sentences(one.text), _sentences(other.text)
        if mine and theirs and one.document != other.document and theirs[0] not in one.text:
            yield NearMiss("other_document", f"{mine[0]} … {theirs[0]}", one.text)


def _in_wrong_order(blocks: Sequence[SourceBlock], chance: random.Random) -> Iterator[NearMiss]:
    for block in blocks:
        sentences = _sentences(block.text)
        if len(sentences) > 1:
            first, last = sorted(chance.sample(range(len(sentences)), 2))
            glue = chance.choice((" … ", " "))
            yield NearMiss("wrong_order", f"{sentences[last]}{glue}{sentences[first]}", block.text)
