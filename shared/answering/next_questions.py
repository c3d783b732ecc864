"""Selects the follow-up questions to suggest below an answer.

The model writes them in `<follow_up>` tags with the answer, so a document may have planted one. Only short,
plain questions are shown that neither repeat a question of the thread nor ask what the answer says.
"""

import re
from collections.abc import Iterable

from shared.evidence.reader_text import readable_line
from shared.evidence.text import split_sentences, without_marks
from shared.retrieval.terms import FUNCTION_WORDS

MAX_QUESTIONS = 2
# Maximum length of a question. Together with its tag, it then takes about 40 tokens of 3.6 characters.
MAX_CHARS = 120
# Minimum share of common terms for two questions to count as the same.
_SAME = 0.8
# Number of terms of the subject that a statement about it may omit.
_IMPLIED = 1
# Minimum share of a question's terms that a statement must contain to count as its answer. With 0.66, twice
# as many good questions would be dropped.
_SHARE = 0.75
# Number of letters compared per word. With five, "weigh", "weighs" and "weight" are one term.
_STEM_CHARS = 5
_END = re.compile(r"[?？؟]\Z")
# Markup, and addresses that a reader's client may turn into links.
_NOT_PLAIN = re.compile(r"[`*~#<>\[\]{}|\\@]|\w\.\w+/|\bwww\b|//")
_WORD = re.compile(r"[^\W_]+")
# Question words. They count as terms, because "who signed it" and "when was it signed" differ only in them.
_KINDS = frozenset(
    """who whom whose when where why wer wem wen wessen wann wo wohin woher warum wieso weshalb qui quand où
    pourquoi quién cuándo dónde chi quando dove perché wanneer waar waarom""".split()
)
# Words that ask for a value or a rule, such as "how long" or "may I". An answer states the value or rule
# without them.
_EMPTY_WORDS = FUNCTION_WORDS | frozenset(
    """many often long high old big large quickly soon far amount number may must shall might happen happens
    happened die der oft lange hoch hohe hohem hoher alt groß schnell viel viele darf dürfen muss müssen
    passiert geschieht combien temps longtemps faut doit peut""".split()
)
# These words count as terms, because only they distinguish "What is being done about delays?" from "What are
# the delays?".
_DEEDS = frozenset(("doing", "done"))


def worth_asking(
    suggestions: Iterable[str], question: str, answer: str, earlier: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return at most two of the suggested follow-up questions. They are safe to show, and neither asked
    before nor answered yet.

    Args:
        suggestions: questions as the model wrote them.
        question: the question that was answered.
        answer: the text of the answer.
        earlier: other questions of the thread, and other wordings of `question`.
    """
    subject = _terms(question)
    earlier_terms = [subject, *map(_terms, earlier)]
    statements = [_terms(sentence) for sentence in split_sentences(without_marks(answer))]
    chosen: list[str] = []
    for suggestion in (" ".join(words.split()) for words in suggestions):
        terms = _terms(suggestion)
        if (
            len(chosen) < MAX_QUESTIONS
            and _is_plain_question(suggestion)
            and not any(_asks_the_same(terms, other) for other in earlier_terms)
            and not _is_answered(terms - _KINDS, subject, statements)
        ):
            chosen.append(suggestion)
            earlier_terms.append(terms)
    return tuple(chosen)


def _is_plain_question(text: str) -> bool:
    return (
        len(text) <= MAX_CHARS
        and bool(_END.search(text))
        and not _NOT_PLAIN.search(text)
        and readable_line(text) == text
        and len(split_sentences(text)) == 1  # a sentence before the question could be an instruction
    )


def _asks_the_same(terms: frozenset[str], other: frozenset[str]) -> bool:
    return terms <= other or len(terms & other) >= _SAME * len(terms | other)


def _is_answered(
    terms: frozenset[str], subject: frozenset[str], statements: Iterable[frozenset[str]]
) -> bool:
    """Return whether a single statement answers the question with these terms. It must contain all of them,
    or most of them and one that is not in `subject`. One term may be in the subject instead.

    One term alone proves nothing, and neither does the subject alone.
    """
    return len(terms) > 1 and any(
        terms <= statement
        or bool(terms & statement - subject and len(terms & statement) >= _SHARE * len(terms))
        or (not terms <= subject and terms <= statement | subject and len(terms - statement) <= _IMPLIED)
        for statement in statements
    )


def _terms(text: str) -> frozenset[str]:
    """Return the stems of a text's content words, and its question words unchanged."""
    words = {word.casefold() for word in _WORD.findall(text)}
    return frozenset(
        word[:_STEM_CHARS].rstrip("s") if word.isalpha() and word not in _KINDS else word
        for word in words
        if word in _KINDS
        or word in _DEEDS
        or (word not in _EMPTY_WORDS and (len(word) > 1 or word.isdigit()))
    )
