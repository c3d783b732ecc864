"""What a question asks about, one by one: its parts, and what it enumerates. Pure.

"Compare the price, the weight and the warranty of both pumps" asks for three things.
"""

import re
from collections.abc import Collection

from local.model_server.text.asked import asked_of
from local.model_server.text.parts import question_parts
from local.model_server.text.words import stem, stems_of, topic_words

MAX_ASPECTS = 6
_ARTICLE = r"(?:(?:the|their|its|each|die|der|das|den|dem|ihre?[nrm]?|deren)\s+)"
_ITEM = rf"{_ARTICLE}?(?!(?:and|und|or|oder)\b)[^\W\d_][\w-]*(?:\s+(?!(?:and|und|or|oder)\b)[\w-]+){{0,2}}?"
_LINK = r"(?:,\s+|,?\s+(?:and|und|or|oder|sowie)\s+)"
_BEHIND = (
    r"(?=\s+(?:of|in|for|between|across|from|among|von|der|des|im|bei|zwischen|für|in)\b|\s*[?.!;:]|\s*$)"
)
_LISTS = (
    re.compile(
        r"\b(?:regarding|concerning|in terms of|with respect to|with regard to|hinsichtlich|bezüglich|"
        rf"in bezug auf)\s+(?P<list>{_ITEM}(?:{_LINK}{_ITEM})+){_BEHIND}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?:compare|vergleich\w*|contrast)\s+(?P<list>{_ITEM}(?:{_LINK}{_ITEM})+)"
        r"(?=\s+(?:of|in|between|across|von|der|des|im|zwischen)\b)",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?P<list>{_ITEM}(?:,\s+{_ITEM})+,?\s+(?:and|und|or|oder|sowie)\s+{_ITEM}){_BEHIND}",
        re.IGNORECASE,
    ),
)
# "prove that … and that …" wants two proofs.
_THAT = re.compile(r",?\s+(?:and|und)\s+(?=(?:that|dass)\b)", re.IGNORECASE)
_SPLIT = re.compile(_LINK, re.IGNORECASE)
# Words of a question that say that things are compared or put together, not what is asked of them.
_COMPARING = frozenset(
    stem(word)
    for word in """change changed changes differ difference differences different between version
    versions versus two both new old compare compared comparing contrast similarities conflicts evidence proof
    key main important unterschied unterschiede unterscheiden geändert änderung neu alt beleg
    belege beweis wichtigsten gemeinsamkeiten widersprüche""".split()
)


def aspects_of(question: str, names: Collection[str] = ()) -> list[str]:
    """The things asked about, at most six; those that only name documents (stems in `names`) left out."""
    parts = [one for part in question_parts(asked_of(question)) for one in _THAT.split(part)]
    aspects = [aspect for part in parts for aspect in _enumerated(part)]
    telling = [aspect for aspect in aspects if topic_stems(aspect, names)]
    return list(dict.fromkeys(telling))[:MAX_ASPECTS]


def topic_stems(question: str, names: Collection[str] = ()) -> set[str]:
    """Stems of what is asked, without those that name documents and those that only say "compare"."""
    return {stem(word) for word in topic_words(question)} - set(names) - _COMPARING


def subject_of(question: str, names: Collection[str] = ()) -> str:
    """The words of a question that say what it is about, as they stand; all of it where none do."""
    telling = topic_stems(question, names)
    words = [word for word in question.split() if telling.intersection(stems_of(word))]
    return " ".join(words).strip(" ,;:?!.") or question


def _enumerated(part: str) -> list[str]:
    found = next((match for pattern in _LISTS if (match := pattern.search(part))), None)
    if not found:
        return [part]
    return [item.strip() for item in _SPLIT.split(found["list"]) if item.strip()]
