"""The analyzers `standard.lucene` and `keyword` of the service, built from tantivy components.

Other analyzers are rejected. The standard tokenizer approximates the Unicode word boundaries (UAX 29) with
one pattern: words keep inner apostrophes and dots, numbers keep separators, and each ideograph is a token.
"""

from functools import lru_cache
from typing import Final

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

STANDARD: Final = "standard.lucene"
KEYWORD: Final = "keyword"
# Name of the internal analyzer for semantic ranking. It stems English words and drops question words, which
# say nothing about the answer.
QUESTION: Final = "groundwork.question"
MAX_TOKEN_CHARS: Final = 300  # longer tokens are dropped, as by Lucene
_WORD: Final = r"[\w--[\p{Han}\p{Hiragana}]]"
_TOKEN: Final = rf"[\p{{Han}}\p{{Hiragana}}]|\d+(?:[.,;]\d+)+{_WORD}*|{_WORD}+(?:['’.]{_WORD}+)*"
_QUESTION_WORDS: Final = (
    "about am are as been being can could did do does doing done for from get give gives had has have having"
    " he her here him his how i if its just let me more most much must my of on our please she should show so"
    " some tell than that their them then there these they this those to us was we were what when where which"
    " who whom whose why will with would you your"
).split()


def is_known(name: str) -> bool:
    return name in (STANDARD, KEYWORD)


@lru_cache(maxsize=4)
def analyzer(name: str) -> TextAnalyzer:
    if name == KEYWORD:
        return TextAnalyzerBuilder(Tokenizer.raw()).build()
    builder = TextAnalyzerBuilder(Tokenizer.regex(_TOKEN.replace("’", "") if name == QUESTION else _TOKEN))
    builder = builder.filter(Filter.remove_long(MAX_TOKEN_CHARS)).filter(Filter.lowercase())
    if name == QUESTION:
        # The stemmer strips 's only with a straight apostrophe, so words are split at the typographic one.
        builder = builder.filter(Filter.custom_stopword(_QUESTION_WORDS))
        builder = builder.filter(Filter.stopword("english")).filter(Filter.stemmer("english"))
    return builder.build()
