"""Keyword queries in the syntax of the search service.

The only place where a question becomes a query: its words are never interpreted as operators.
"""

import re
from collections.abc import Collection, Iterable
from itertools import islice, pairwise

from shared.retrieval.terms import (
    FUNCTION_WORDS,
    question_terms,
    terms_of,
    without_elision,
    without_possessive,
)

_QUERY_WORD = re.compile(r"\w+")
_ANYWHERE = re.compile(r"""([+|"()'\\])""")
# Matches a leading minus; elsewhere, a hyphen is part of a word, as in R-134a.
_MINUS_FIRST = re.compile(r"(?<!\S)-")
_AROUND_WORDS = '.,;:!?¿¡…()[]{}"“”„«»‘'
_STAR_LAST = re.compile(r"\*(?!\S)")
_LUCENE = re.compile(r"""([+\-&|!(){}\[\]^"~*?:\\/])""")
_LUCENE_WORDS = frozenset({"AND", "OR", "NOT"})
PAIR_WEIGHT = 0.25  # weight of adjacent words, relative to single words; 0.5 is as good (decision 0006)
NEAR_WEIGHT = 0.25  # weight of words near each other; a higher one helps with prose and harms with filings
NAME_WEIGHT = 0.25  # weight of words that name the document, which don't help to find a place in it
_MIN_OTHER_WORDS = 2  # if a question has fewer words that are not names, names get full weight
NEAR_WORDS = 3  # maximum distance, in words, of words that count as near
# Maximum number of pairs of each kind; longer texts aren't questions, and the service accepts 1,024 clauses.
_MAX_PAIRS = 40


def name_query(question: str) -> str | None:
    """Return a full Lucene query for documents that a question may name, or None if the question has no
    content words.

    A term must match a name, and its weight is its rarity among all words: the clause on `names` selects with
    nearly no weight, and the clause on `words` scores. Terms are lower-case letters and digits, so none is an
    operator.
    """
    terms = question_terms(question)
    return " ".join(f"(+names:{term}^0.001 +words:{term})" for term in terms) or None


def keyword_query(text: str) -> str:
    """Return a simple-syntax query for the words of `text`, with operators escaped.

    Unescaped, "-12 bar" would exclude 12, and a lone quotation mark or parenthesis would change the rest of
    the query.
    Source: "Simple query syntax in Azure AI Search", the sections on special characters and on escaping.
    """
    escaped = _ANYWHERE.sub(r"\\\1", text)
    return _STAR_LAST.sub(r"\\*", _MINUS_FIRST.sub(r"\\-", escaped))


def any_word_query(text: str) -> str:
    """Return a simple-syntax query that matches any content word of `text`, or its form in document names.

    Without content words, all words are used.
    """
    words = [
        word for word in text.split() if _says_something(word.strip(_AROUND_WORDS), text)
    ] or text.split()
    known = {word.strip(_AROUND_WORDS).casefold() for word in words}
    return " ".join(
        [keyword_query(" ".join(words)), *(term for term in question_terms(text) if term not in known)]
    )


def all_words_query(text: str) -> str:
    """Return a full Lucene query that requires every content word of `text`, or an empty string if there are
    no words.

    The last word also matches as a prefix, because the user may still be typing.
    """
    words = _QUERY_WORD.findall(text)
    *earlier, last = [word for word in words if word.casefold() not in FUNCTION_WORDS] or words or [""]
    if not last:
        return ""
    # The last word is put in lower case here, because the service doesn't analyze prefix terms.
    return " ".join([*(f"+{_escaped(word)}" for word in earlier), f"+({_escaped(last)} {last.lower()}*)"])


def question_query(question: str, names: Collection[str] = ()) -> str:
    """Return a full Lucene query that scores a question's content words, and pairs of them that occur close
    together.

    Function words are dropped: they match nearly every block and would outweigh rare words. Possessives are
    reduced to the word. Two neighbouring content words count more where they are adjacent, and two separated
    only by function words where they are near: `relief valve "relief valve"^0.25 "relief valve"~3^0.25`.
    Words that name a document get little weight: the document is preferred anyway, and within it they favour
    its cover and signatures. Without content words, all words are used.

    Args:
        names: terms of the found documents' names, as `document_name_terms` returns them.
    """
    words = [without_possessive(word.strip(_AROUND_WORDS)) for word in question.split()]
    bare = {plain: "" for word in words if (plain := without_elision(word)) != word}
    content_words = [word if word and _says_something(word, question) else "" for word in words]
    if not any(content_words):
        return _each(question.split())
    naming = {word for word in content_words if _is_name(word, names)}
    if len({*content_words} - naming - {""}) < _MIN_OTHER_WORDS:
        naming = set()
    others = ["" if word in naming else word for word in content_words]
    beside = [pair for pair in pairwise(others) if all(pair)]
    near = list(pairwise(dict.fromkeys(word for word in others if word)))
    parts = [
        _each([*others, *bare]),
        *_pairs(beside, f"^{PAIR_WEIGHT}"),
        *_pairs(near, f"~{NEAR_WORDS}^{NEAR_WEIGHT}"),
        *(f"{_escaped(word)}^{NAME_WEIGHT}" for word in dict.fromkeys(content_words) if word in naming),
    ]
    return " ".join(parts)


def _is_name(word: str, names: Collection[str]) -> bool:
    """Return whether a word starts with a capital or has a digit, and all its terms are in `names`."""
    is_proper = word[:1].isupper() or any(map(str.isdigit, word))
    return is_proper and bool(terms := terms_of(word)) and all(term in names for term in terms)


def _pairs(pairs: Iterable[tuple[str, str]], suffix: str) -> list[str]:
    quoted = (f'"{_escaped(one)} {_escaped(other)}"{suffix}' for one, other in dict.fromkeys(pairs))
    return list(islice(quoted, _MAX_PAIRS))


def _each(words: Iterable[str]) -> str:
    return " ".join(_escaped(word) for word in dict.fromkeys(words) if word)


def _escaped(word: str) -> str:
    """Escape a word for full Lucene syntax, including the operators AND, OR and NOT.

    Source: "Lucene query syntax in Azure AI Search", the section on escaping.
    """
    return f"\\{word}" if word in _LUCENE_WORDS else _LUCENE.sub(r"\\\1", word)


def _says_something(word: str, question: str) -> bool:
    # "IT" and "WHO" are acronyms, not function words, unless the whole question is in capitals.
    is_acronym = len(word) > 1 and word.isupper() and not question.isupper()
    return is_acronym or word.casefold() not in FUNCTION_WORDS
