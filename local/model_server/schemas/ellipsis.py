"""Fragments that go on with the question before: "And for model B?", "What about leave?", "und 2023?". Pure.

What the fragment names takes the place of its like in the earlier question: a year that of a year, "model B"
that of "model A", a code that of a code, "for contractors" that of "for employees". Without one it is added.
"""

import re

_LEAD = re.compile(
    r"^(?:(?:and|but|so|then|or|und|aber|oder)\b[,\s]+)?"
    r"(?:(?:what|how)\s+about|was\s+ist\s+mit|wie\s+ist\s+es\s+mit|wie\s+sieht\s+es\s+(?:aus\s+)?mit)\s+"
    r"|^(?:and|but|or|und|aber|oder)\b[,\s]+",
    re.IGNORECASE,
)
# What begins so has a verb of its own: a whole question, of which only a pronoun may be missing.
_WHOLE = re.compile(
    r"(?:what|how|when|who|whom|whose|which|why|where|is|are|was|were|does|do|did|can|may|must|should|has|have|will|"
    r"was|wie|wann|wer|wen|wem|welche[rsnm]?|warum|wieso|weshalb|wo|ist|sind|war|waren|hat|haben|kann|darf|muss|"
    r"soll|wird|werden|gibt)\b",
    re.IGNORECASE,
)
_PREPOSITION = re.compile(
    r"^(for|of|in|at|on|from|by|with|under|since|after|before|für|von|vom|im|am|bei|beim|mit|aus|zum|zur|nach|seit|"
    r"unter)\s+",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:the|a|an|der|die|das|den|dem|des|eine[nmrs]?|ein)\s+", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_ONLY_YEAR = re.compile(
    r"^(?:(?:in|for|of|für|von|im|aus)\s+)?(?:(?:the\s+)?year\s+|jahre?\s+|dem\s+jahre?\s+)?((?:19|20)\d\d)$",
    re.IGNORECASE,
)
_CODE = r"(?-i:[A-ZÄÖÜ][\w-]*|\d[\w.-]*|[\w-]*\d[\w-]*)"
_GERMAN_NOUN = re.compile(r"\b(?:der|die|das|den|dem)\s+[A-ZÄÖÜ][\w-]+")
_GERMAN = re.compile(r"\b(?:wie|was|wer|wann|welche\w*|der|die|das|ist|im|und|für)\b", re.IGNORECASE)


def fragment_of(question: str) -> str | None:
    """What is left of a question that only names something else; None when it is a question of its own."""
    lead = _LEAD.match(question)
    if not lead:
        return None
    rest = question[lead.end() :].rstrip("?.! ")
    is_asked_about = " " in lead.group().strip()  # "what about …": whatever follows is what is meant
    return rest if rest and (is_asked_about or not _WHOLE.match(rest)) else None


def without_lead(question: str) -> str:
    """ "And how heavy is it?" -> "How heavy is it?"."""
    lead = _LEAD.match(question)
    if not lead:
        return question
    rest = question[lead.end() :]
    return rest[:1].upper() + rest[1:]


def carry_over(fragment: str, earlier: str, topic: str) -> str:
    """The earlier question asked about what the fragment names. `topic`: what the earlier one was about."""
    asked = earlier.rstrip("?.! ")
    return f"{_with_year(fragment, asked) or _with_like(fragment, asked, topic) or _added(fragment, asked)}?"


def _with_year(fragment: str, asked: str) -> str | None:
    only = _ONLY_YEAR.match(fragment)
    if not only:
        return None
    found = list(_YEAR.finditer(asked))
    if found:
        return asked[: found[-1].start()] + only.group(1) + asked[found[-1].end() :]
    preposition = "im Jahr" if _GERMAN.search(asked) else "in"
    return f"{asked} {preposition} {only.group(1)}"


def _with_like(fragment: str, asked: str, topic: str) -> str | None:
    named = _ARTICLE.sub("", _PREPOSITION.sub("", fragment))
    words = named.split()
    head, tail = re.escape(words[0]), re.escape(words[-1])
    # "model B" for "model A": the same word before another name.
    if len(words) > 1 and (found := re.search(rf"\b{head}((?:\s+{_CODE})+)", asked, re.IGNORECASE)):
        return asked[: found.start()] + named + asked[found.end() :]
    # "sick leave" for "parental leave": another word before the same one.
    if len(words) > 1 and (found := re.search(rf"\b[\w-]+\s+{tail}\b", asked, re.IGNORECASE)):
        return asked[: found.start()] + named + asked[found.end() :]
    bare = _ARTICLE.sub("", topic)
    if bare in asked and _is_name(named) and _is_name(bare):
        return asked.replace(bare, named, 1)
    return _with_noun(fragment, asked) or _after_preposition(fragment, asked)


def _with_noun(fragment: str, asked: str) -> str | None:
    """ "die Pumpe" for "der Filter", when the earlier question has one German noun with an article."""
    nouns = list(_GERMAN_NOUN.finditer(asked))
    if len(nouns) != 1 or not _GERMAN_NOUN.fullmatch(fragment):
        return None
    return asked[: nouns[0].start()] + fragment + asked[nouns[0].end() :]


def _after_preposition(fragment: str, asked: str) -> str | None:
    """ "for contractors" for "for employees", when that ends the earlier question."""
    preposition = _PREPOSITION.match(fragment)
    if not preposition:
        return None
    found = re.search(rf"\b{preposition.group(1)}\s+[\w\s-]{{1,40}}$", asked, re.IGNORECASE)
    return asked[: found.start()] + fragment if found else None


def _added(fragment: str, asked: str) -> str:
    return f"{asked} {fragment}" if _PREPOSITION.match(fragment) else f"{asked}: {fragment}"


def _is_name(text: str) -> bool:
    return re.fullmatch(rf"{_CODE}(?:\s+{_CODE})*", text) is not None
