"""The names and numbers of a question, and whether a text holds them. Pure.

A name that none of the documents at hand holds is the best sign that they do not answer. So only what is a
name for certain counts, and a slip of the pen does not make another name of it.
"""

import re
from collections.abc import Collection

from local.model_server.text.languages import detect_language
from local.model_server.text.words import is_content_word, stem, words_of

STEM_PREFIX = 6  # "reimburse" meets "reimbursement"
_FEWEST_LETTERS_OF_A_SLIP = 5  # shorter words are too close to each other: "cost", "post"
# Capitalised inside a sentence, or with a digit.
NAME = re.compile(r"(?<!^)(?<![.?!:] )(?<![.?!:] [\"“„(])\b[A-ZÀ-ÖØ-Þ][\w-]*|\b\w*\d[\w-]*(?:[.,]\d+)*")
# German capitalises every noun: there only what is all in capitals.
_NAME_IN_GERMAN = re.compile(r"\b[A-ZÀ-ÖØ-Þ]{3,}\b|\b\w*\d[\w-]*(?:[.,]\d+)*")
# Where something stands, and what is between brackets or quotation marks, is no name that a text must hold.
_PLACE = re.compile(
    r"""\b(?:pages?|figures?|fig|tables?|sections?|chapters?|appendix|slides?|columns?|rows?|lines?|seiten?|
    abbildung(?:en)?|abb|tabellen?|abschnitte?|kapitel|anhang|folien?|spalten?|zeilen?)\.?\s*
    \(?\d+(?:[.-]\d+)*\)?""",
    re.IGNORECASE | re.VERBOSE,
)
_BRACKETS = re.compile(r"\([^)]*\)|\[[^\]]*\]")
_YEAR_IN_CODE = re.compile(r"^\D{1,2}((?:19|20)\d\d)$")
_ORDINAL = re.compile(r"^(\d+)(?:st|nd|rd|th)$")
_SHORTEST_NAME = 3  # "Q2" and "5 %" are written in too many ways


def names_of(question: str) -> list[str]:
    """Lower-case words that are names or numbers, in order."""
    bare = _BRACKETS.sub(" ", _PLACE.sub(" ", question))
    pattern = _NAME_IN_GERMAN if detect_language(question) == "de" else NAME
    words = (word for found in pattern.findall(bare) for word in words_of(found))
    return [word for word in dict.fromkeys(words) if len(word) >= _SHORTEST_NAME and is_content_word(word)]


def missing_names(question: str, stems: Collection[str]) -> list[str]:
    """The names that are not among the stems; "FY2018" may stand there as "2018", "1st" as "1"."""
    return [name for name in names_of(question) if not any(occurs(one, stems) for one in _readings(name))]


def _readings(name: str) -> tuple[str, ...]:
    found = _YEAR_IN_CODE.match(name) or _ORDINAL.match(name)
    return (stem(name), found.group(1)) if found else (stem(name),)


def occurs(word_stem: str, stems: Collection[str]) -> bool:
    """Whether a stem is among the stems: itself, a form of it, or it with one letter wrong."""
    if word_stem in stems:
        return True
    if any(letter.isdigit() for letter in word_stem):
        return False
    if len(word_stem) >= STEM_PREFIX and any(_shares_beginning(word_stem, other) for other in stems):
        return True
    return len(word_stem) >= _FEWEST_LETTERS_OF_A_SLIP and any(_is_slip(word_stem, other) for other in stems)


def _shares_beginning(one: str, other: str) -> bool:
    return other.startswith(one[:STEM_PREFIX]) or (len(other) >= STEM_PREFIX and one.startswith(other))


def _is_slip(one: str, other: str) -> bool:
    """Whether one letter is missing, too much, another, or two neighbours are swapped; not the first one."""
    if abs(len(one) - len(other)) > 1 or one[:1] != other[:1] or len(other) < _FEWEST_LETTERS_OF_A_SLIP:
        return False
    same = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    rest, rest_other = one[same:], other[same:]
    return (
        rest[1:] == rest_other[1:]
        or rest[1:] == rest_other
        or rest == rest_other[1:]
        or (rest[:2] == rest_other[1::-1] and rest[2:] == rest_other[2:])
    )
