"""Tokenization, stemming, content words and language detection for short texts. Pure."""

import re
import unicodedata
from collections import Counter
from functools import lru_cache

STOP_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": """a about above after again against all also am an and any are as at be because been before
            being below between both but by can could did do does doing down during each few
            for from further had has have having he her here hers him his how i if in into
            is it its itself just me more most my no nor not now of off on once only or
            other our out over own same she should so some such than that the their them
            then there these they this those through to too under until up us very was we
            were what when where which while who whom why will with within without would you
            your s t don shall may might must upon per via whether""",
        "de": """ab aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bin
            bis bist da damit dann das dass dein deine dem den denn der des dessen dich die
            dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem
            einen einer eines er es etwas für gegen hat hatte habe haben hier hin ich ihm
            ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist ja jede jedem jeden jeder
            jedes kann kein keine können könnte man mehr mein meine mit muss müssen nach
            nicht noch nun nur ob oder ohne sehr sein seine seinem seinen seiner sich sie
            sind so soll sollen sowie über um und uns unser unter vom von vor wann war waren
            warum was weil welche welchem welchen welcher welches wenn wer werden wie wieder
            wieviel will wir wird wo wurde wurden zu zum zur zwischen""",
        "fr": """à au aux avec c ce ces cette comme d dans de des du elle elles en est et être il ils je l la
            le les leur leurs lui mais ne nous on ont ou où par pas plus pour qu que qui sa
            sans se ses si son sont sur un une vous été""",
    }.items()
}
_LETTERS = re.compile(r"[^\W\d_]+")


def detect_language(text: str) -> str:
    """Return the language code ("en", "de" or "fr") whose stop words are most frequent, or "en" if none
    occur.

    A stop word of several languages ("in", "de") counts for each of them, so the others decide.
    """
    counts = Counter(_LETTERS.findall(text.lower()))
    return max(STOP_WORDS, key=lambda language: sum(counts[word] for word in STOP_WORDS[language]))


# Matches words and numbers. Points and commas inside numbers are kept ("1,200"). "X200" is one word,
# "in-network" is two.
_WORD = re.compile(r"\d+(?:[.,]\d+)*[^\W_]*|[^\W_]+")
_SUFFIXES = (
    "ations", "ation", "ings", "ungen", "ments", "ment", "ing", "ung", "ies", "ern", "ed", "es", "en", "er",
    "em", "ly", "s", "e", "n", "y",
)  # fmt: skip
_SHORTEST_STEM = 4
# Words that request a form of answer ("summarise", "list") and say nothing about its topic.
_ASKING = frozenset(
    """summarise summarize summary overview compare comparison changed differ difference between versus wrote
    written author fasse zusammen zusammenfassung vergleiche unterschied verfasst geschrieben viele often sagt
    say says tell explain describe give show list name find know mean means work works get does please much
    many according document documents text report file page pages bitte zeige nenne erkläre beschreibe gibt
    laut dokument dokumente seite seiten kurz stichpunkten""".split()
)


def words_of(text: str) -> list[str]:
    """Return the words and numbers of a text in order, in lower case, with accents kept."""
    return _WORD.findall(unicodedata.normalize("NFC", text).lower())


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return a word without accents and without its ending. This is enough to match inflected forms in
    English and German.

    Numbers and words with digits are unchanged: "2023" must not match "202".
    """
    if any(letter.isdigit() for letter in word):
        return word
    bare = "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))
    bare = bare.replace("ß", "ss")
    for suffix in _SUFFIXES:
        if bare.endswith(suffix) and len(bare) - len(suffix) >= _SHORTEST_STEM:
            return bare[: -len(suffix)]
    return bare


def stems_of(text: str) -> list[str]:
    """Return the stems of all words in a text, in order, including stop words."""
    return [stem(word) for word in words_of(text)]


def is_content_word(word: str) -> bool:
    """Return whether a lower-case word is a number, or longer than one letter and no English or German stop
    word.
    """
    if word.isdigit():
        return True
    return len(word) > 1 and word not in STOP_WORDS["en"] and word not in STOP_WORDS["de"]


def content_words(text: str) -> list[str]:
    """Return the distinct content words of a text, in order of appearance."""
    return list(dict.fromkeys(word for word in words_of(text) if is_content_word(word)))


def topic_words(question: str) -> list[str]:
    """Return the content words of a question, without words such as "explain" or "list" that only request a
    form of answer.
    """
    return [word for word in content_words(question) if word not in _ASKING]


def topic_stems(question: str) -> list[str]:
    """Return the stems of a question's topic words, in order."""
    return [stem(word) for word in topic_words(question)]
