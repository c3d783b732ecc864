"""Text analyzers by their names in the protocol, built of tantivy's. An unknown name is refused.

The standard tokenizer follows Unicode's word boundaries (UAX 29) as far as one pattern can: words keep inner
apostrophes and dots, numbers their separators, and an ideograph is a token of its own.
"""

from functools import lru_cache
from typing import Final

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

_WORD: Final = r"[\w--[\p{Han}\p{Hiragana}]]"
_STANDARD_TOKEN: Final = rf"[\p{{Han}}\p{{Hiragana}}]|\d+(?:[.,;]\d+)+{_WORD}*|{_WORD}+(?:['’.]{_WORD}+)*"
# Stemmers strip 's but do not know the typographic apostrophe, so there a word ends at it.
_LANGUAGE_TOKEN: Final = _STANDARD_TOKEN.replace("’", "")
_LETTERS: Final = r"\p{L}+"
MAX_TOKEN_CHARS: Final = 300  # Lucene's limit for one token of a language analyzer

STANDARD: Final = "standard.lucene"
_LANGUAGES: Final = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish",
    "fi": "finnish", "fr": "french", "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian",
    "pt-Br": "portuguese", "pt-Pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish",
    "ta": "tamil", "tr": "turkish",
}  # fmt: skip
_WITHOUT_STOPWORDS: Final = frozenset({"arabic", "greek", "romanian", "tamil", "turkish"})
_PLAIN: Final = {
    STANDARD: _STANDARD_TOKEN,
    "standard": _STANDARD_TOKEN,
    "standardasciifolding.lucene": _STANDARD_TOKEN,
    "simple": _LETTERS,
    "stop": _LETTERS,
    "pattern": r"\w+",
    "whitespace": r"\S+",
}


# For the semantic heuristic only: a question's own words say nothing about where its answer is.
QUESTION: Final = "groundwork.question"
_QUESTION_WORDS: Final = (
    "about am are as been being can could did do does doing done for from get give gives had has have having"
    " he her here him his how i if its just let me more most much must my of on our please she should show so"
    " some tell than that their them then there these they this those to us was we were what when where which"
    " who whom whose why will with would you your"
).split()


def is_known(name: str) -> bool:
    return name in _PLAIN or name == "keyword" or (name != QUESTION and _language_of(name) is not None)


@lru_cache(maxsize=64)
def analyzer(name: str) -> TextAnalyzer:
    """The analyzer of that name.

    Raises:
        ValueError: no such analyzer here.
    """
    if name == "keyword":
        return TextAnalyzerBuilder(Tokenizer.raw()).build()
    language = _language_of(name)
    if language is None and name not in _PLAIN:
        raise ValueError(f"The analyzer '{name}' is not supported by the local search server.")
    builder = TextAnalyzerBuilder(Tokenizer.regex(_PLAIN.get(name, _LANGUAGE_TOKEN)))
    builder = builder.filter(Filter.remove_long(MAX_TOKEN_CHARS))
    for step in _filters(name, language):
        builder = builder.filter(step)
    return builder.build()


def _filters(name: str, language: str | None) -> list[Filter]:
    steps = [] if name == "whitespace" else [Filter.lowercase()]
    if name == "standardasciifolding.lucene":
        steps.append(Filter.ascii_fold())
    if name == QUESTION:
        steps.append(Filter.custom_stopword(_QUESTION_WORDS))
    if name == "stop":
        steps.append(Filter.stopword("english"))
    if language is not None:
        if language not in _WITHOUT_STOPWORDS:
            steps.append(Filter.stopword(language))
        steps.append(Filter.stemmer(language))
    return steps


def _language_of(name: str) -> str | None:
    if name == QUESTION:
        return "english"
    code, _, kind = name.rpartition(".")
    return _LANGUAGES.get(code) if kind in ("lucene", "microsoft") else None
