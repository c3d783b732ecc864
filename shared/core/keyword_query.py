"""Keyword queries. The one place where what a person writes becomes a query in the simple syntax."""

import re

from shared.core.function_words import FUNCTION_WORDS
from shared.core.naming import without_possessive

_ANYWHERE = re.compile(r"""([+|"()'\\])""")
_MINUS_FIRST = re.compile(r"(?<!\S)-")  # elsewhere it is part of a word: R-134a
_AROUND_WORDS = '.,;:!?¿¡…()[]{}"“”„«»‘'
_STAR_LAST = re.compile(r"\*(?!\S)")


def keyword_query(text: str) -> str:
    """A query for the words of `text`: signs that the simple syntax reads as operators are escaped.

    Unescaped, "-12 bar" would look for what does not hold 12, and a lone quotation mark or parenthesis would
    change how all that follows is read.
    Source: "Simple query syntax in Azure AI Search", the sections on special characters and on escaping.
    """
    escaped = _ANYWHERE.sub(r"\\\1", text)
    return _STAR_LAST.sub(r"\\*", _MINUS_FIRST.sub(r"\\-", escaped))


def question_query(question: str) -> str:
    """A query for the words of a question that say something; the whole question if none of them does.

    Function words match nearly every block, and together outweigh the rare word that counts; of a possessive
    the word itself is looked for, each word once.
    """
    words = [without_possessive(word.strip(_AROUND_WORDS)) for word in question.split()]
    told = [word for word in dict.fromkeys(words) if word and _says_something(word, question)]
    return keyword_query(" ".join(told) if told else question)


def _says_something(word: str, question: str) -> bool:
    # "IT" and "WHO" are names where the rest is not written in capitals, too.
    is_acronym = len(word) > 1 and word.isupper() and not question.isupper()
    return is_acronym or word.casefold() not in FUNCTION_WORDS
