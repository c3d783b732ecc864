"""Keyword queries. The one place where what a person writes becomes a query: words, never operators."""

import re
from collections.abc import Iterable
from itertools import islice, pairwise

from shared.core.function_words import FUNCTION_WORDS
from shared.core.naming import without_possessive

_ANYWHERE = re.compile(r"""([+|"()'\\])""")
_MINUS_FIRST = re.compile(r"(?<!\S)-")  # elsewhere it is part of a word: R-134a
_AROUND_WORDS = '.,;:!?¿¡…()[]{}"“”„«»‘'
_STAR_LAST = re.compile(r"\*(?!\S)")
_LUCENE = re.compile(r"""([+\-&|!(){}\[\]^"~*?:\\/])""")
_LUCENE_WORDS = frozenset({"AND", "OR", "NOT"})
PAIR_WEIGHT = 0.25  # of two words that stand together, against each alone; 0.5 does as well (decision 0013)
NEAR_WEIGHT = 0.25  # of two words that stand near each other; more helps prose and harms filings
NEAR_WORDS = 3  # that may stand between them in the text
_MAX_PAIRS = 40  # of each sort: a longer text is no question, and the service takes 1,024 clauses


def keyword_query(text: str) -> str:
    """A query for the words of `text`: signs that the simple syntax reads as operators are escaped.

    Unescaped, "-12 bar" would look for what does not hold 12, and a lone quotation mark or parenthesis would
    change how all that follows is read.
    Source: "Simple query syntax in Azure AI Search", the sections on special characters and on escaping.
    """
    escaped = _ANYWHERE.sub(r"\\\1", text)
    return _STAR_LAST.sub(r"\\*", _MINUS_FIRST.sub(r"\\-", escaped))


def question_query(question: str) -> str:
    """A query in the full Lucene syntax for the words of a question that say something, and pairs of them.

    Function words match nearly every block, and together outweigh the rare word that counts; of a possessive
    the word itself is looked for, each word once. Two such words side by side count more where they stand
    side by side, too, and two with only function words between them where they stand near each other:
    `relief valve "relief valve"^0.25 "relief valve"~3^0.25`. All the words if none of them says something.
    """
    words = [without_possessive(word.strip(_AROUND_WORDS)) for word in question.split()]
    told = [word if word and _says_something(word, question) else "" for word in words]
    if not any(told):
        return _each(question.split())
    beside = [pair for pair in pairwise(told) if all(pair)]
    near = list(pairwise(dict.fromkeys(word for word in told if word)))
    parts = [_each(told), *_pairs(beside, f"^{PAIR_WEIGHT}"), *_pairs(near, f"~{NEAR_WORDS}^{NEAR_WEIGHT}")]
    return " ".join(parts)


def _pairs(pairs: Iterable[tuple[str, str]], suffix: str) -> list[str]:
    quoted = (f'"{_escaped(one)} {_escaped(other)}"{suffix}' for one, other in dict.fromkeys(pairs))
    return list(islice(quoted, _MAX_PAIRS))


def _each(words: Iterable[str]) -> str:
    return " ".join(_escaped(word) for word in dict.fromkeys(words) if word)


def _escaped(word: str) -> str:
    """A word that the full syntax reads as one; AND, OR and NOT in capitals are words like others.

    Source: "Lucene query syntax in Azure AI Search", the section on escaping.
    """
    return f"\\{word}" if word in _LUCENE_WORDS else _LUCENE.sub(r"\\\1", word)


def _says_something(word: str, question: str) -> bool:
    # "IT" and "WHO" are names where the rest is not written in capitals, too.
    is_acronym = len(word) > 1 and word.isupper() and not question.isupper()
    return is_acronym or word.casefold() not in FUNCTION_WORDS
