"""Makes a follow-up question stand alone: pronouns and ellipsis are filled in from the conversation. Pure.

Simple and safe: the question is never rewritten beyond its pronoun, and what cannot be resolved stays.
"""

import re
from collections.abc import Sequence

from local.model_server.prompt_reader import Turn
from local.model_server.schemas.classify import query_type_of
from local.model_server.schemas.ellipsis import carry_over, fragment_of, without_lead
from local.model_server.schemas.references import find_references
from local.model_server.text.words import is_content_word, topic_words

_PRONOUN = re.compile(
    r"\b(it|its|they|them|their|this|that|these|those|he|she|him|her|there|"
    r"er|es|ihn|ihm|deren|dessen|dieses|diese|dieser|davon|dafür|damit|darin|dort|"
    r"(?-i:sie|ihr|ihre[nmrs]?|seine[nmrs]?))\b",  # "Sie" is whom one speaks to
    re.IGNORECASE,
)
_NEXT_WORD = re.compile(r"^\s+([a-zäöüß-]{2,})", re.IGNORECASE)
# Before a noun these point inside the question ("this manual") or join clauses ("a valve that leaks").
_DEMONSTRATIVES = frozenset({"this", "that", "these", "those", "dieses", "diese", "dieser", "there", "es"})
_POSSESSIVES = frozenset({"its", "their", "her"})
_ARTICLE = re.compile(r"^(?:the|der|die|das|den|dem)\s+", re.IGNORECASE)
_KIND = re.compile(
    r"\b(?:manual|report|policy|guide|handbook|plan|contract|document|procedure|machine|pump|valve|list)s?$",
    re.IGNORECASE,
)
_FEWEST_WORDS = 3  # shorter than that is no question of its own


def resolve(question: str, turns: Sequence[Turn]) -> str:
    """The question as it would be asked without the conversation before it."""
    earlier = [turn.text for turn in turns if turn.role == "user" and turn.text.strip() != question]
    last = ""
    for text in earlier:  # each may itself go on with the one before it
        asked = _resolved(text, last)
        last = asked if topic_of(asked) else last
    return _resolved(question, last)


def _resolved(question: str, last: str) -> str:
    if not last:
        return question
    topic = _topic_for(question, last)
    fragment = fragment_of(question)
    if fragment is not None and not _referring_pronoun(fragment):
        return carry_over(fragment, last, topic)
    asked = without_lead(question)
    if found := _referring_pronoun(asked):
        return asked[: found.start()] + _instead_of(found, asked, topic) + asked[found.end() :]
    if not topic_words(question) or len(question.split()) < _FEWEST_WORDS:
        return f"{question.rstrip('?. ')} ({last.rstrip('?. ')})?"
    return question


def _topic_for(question: str, last: str) -> str:
    """What a pronoun of the question stands for: of one about a document, the document named before."""
    if query_type_of(question) in ("METADATA_SEARCH", "DOCUMENT_SUMMARY"):
        named = find_references(last)
        if named:
            article = re.search(
                rf"\b(?:the|der|die|das|den|dem|our)\s+{re.escape(named[-1])}", last, re.IGNORECASE
            )
            return article.group() if article else named[-1]
    return topic_of(last)


def topic_of(question: str) -> str:
    """What a question is about: its last run of content words with a name or number, or a kind of document.

    "What is the weight of the X200 pump?" -> "the X200 pump". Empty when it has no content word.
    """
    runs = _runs(question)
    named = [
        run
        for run in runs
        if re.search(r"\d|(?<=.)\b[A-ZÄÖÜ]", run[1]) or _is_name(run) or _KIND.search(run[1])
    ]
    if not runs:
        return ""
    before, words = (named or runs)[-1]
    article = _ARTICLE.search(f"{before} ")
    return f"{article.group()}{words}" if article else words


def _runs(question: str) -> list[tuple[str, str]]:
    """(word before, words) of each unbroken run of content words."""
    runs: list[tuple[str, list[str]]] = []
    before, is_open = "", False
    for token in re.findall(r"[\w.-]*\w", question):
        if is_content_word(token.lower()) and topic_words(token):
            if not is_open:
                runs.append((before, []))
            runs[-1][1].append(token)
            is_open = True
        else:
            before, is_open = token, False
    return [(word, " ".join(words)) for word, words in runs]


def _is_name(run: tuple[str, str]) -> bool:
    """Capitalised, and not merely because it begins the question."""
    return bool(run[0]) and run[1][0].isupper()


def _referring_pronoun(question: str) -> re.Match[str] | None:
    """The first pronoun that stands for something said before."""
    for found in _PRONOUN.finditer(question):
        following = _NEXT_WORD.match(question[found.end() :])
        points_inside = found.group(1).lower() in _DEMONSTRATIVES and following
        if not points_inside and not _is_expletive(question, found):
            return found
    return None


def _is_expletive(question: str, found: re.Match[str]) -> bool:
    """ "Where does it say that", "is it true": no one has said what "it" is."""
    if found.group(1).lower() not in {"it", "es"}:
        return False
    return bool(
        re.match(
            r"\s+(?:say|says|true|possible|necessary|allowed|take|erlaubt|möglich|nötig)\b",
            question[found.end() :],
        )
    )


def _instead_of(found: re.Match[str], question: str, topic: str) -> str:
    is_possessive = found.group(1).lower() in _POSSESSIVES and _NEXT_WORD.match(question[found.end() :])
    return f"{topic}'s" if is_possessive else topic
