"""Matching of documents by the names that people use for them, with typos, plurals or formats. Pure."""

import re
from collections.abc import Iterable

from shared.retrieval.models import DocumentRecord
from shared.retrieval.spelling import nearest, slips_allowed

_NAME_WORD = re.compile(r"[^\W_]+")
_SUFFIX = re.compile(r"\.\w{2,5}\Z")
_WORD = re.compile(r"\d+|[^\W\d_]+")  # splits HX200 into two words, so that it equals HX-200
_FILLERS = frozenset(
    "the a an of for and in on to our my this that file document documents pdf report's der die das den dem "
    "des ein eine einen von und für im zum zur datei dokument".split()
)

_MONTHS_IN_ORDER = (
    "january januar jan",
    "february februar feb",
    "march märz mar mär",
    "april apr",
    "may mai",
    "june juni jun",
    "july juli jul",
    "august aug",
    "september sept sep",
    "october oktober oct okt",
    "november nov",
    "december dezember dec dez",
)
MONTH_NAMES = {
    name: f"month {number}"
    for number, names in enumerate(_MONTHS_IN_ORDER, start=1)
    for name in names.split()
}
_MONTH_NUMBERS = {f"{number:02}": f"month {number}" for number in range(1, len(_MONTHS_IN_ORDER) + 1)}

# Users refer to a file by its format, as in "the fire drill e-mail".
_FORMAT_WORDS = {
    "eml": frozenset(("e", "mail", "email")),
    "xlsx": frozenset(("spreadsheet", "workbook", "tabelle")),
    "csv": frozenset(("spreadsheet", "tabelle")),
    "pptx": frozenset(("presentation", "slide", "präsentation")),
    "vtt": frozenset(("recording", "transcript")),
}

# Inflected endings of German document types, also in compounds ("Berichten" becomes "bericht"). The endings
# -ies and -s are English.
_GENITIVES = (
    ("buches", "buch"),
    ("buchs", "buch"),
    ("berichtes", "bericht"),
    ("berichts", "bericht"),
    ("vertrages", "vertrag"),
    ("vertrags", "vertrag"),
    ("leitfadens", "leitfaden"),
    ("protokolls", "protokoll"),
)

_PLURALS = (
    ("bücher", "buch"),
    ("büchern", "buch"),
    ("berichte", "bericht"),
    ("berichten", "bericht"),
    ("verträge", "vertrag"),
    ("verträgen", "vertrag"),
    ("leitfäden", "leitfaden"),
    ("plänen", "plan"),
    ("protokollen", "protokoll"),
    ("anleitungen", "anleitung"),
    ("protokolle", "protokoll"),
    ("pläne", "plan"),
    ("richtlinien", "richtlinie"),
    ("listen", "liste"),
    ("ies", "y"),
    ("s", ""),
)

# Nouns for kinds of documents in the languages of the pages. Beside another name they only describe, and the
# document may be in another language: "Vertrag mit Termoclima" is a "contratto".
_KINDS = frozenset(
    "contract agreement report letter email mail offer invoice minutes "
    "vertrag vereinbarung bericht brief angebot rechnung protokoll "
    "contrat accord rapport lettre offre facture "
    "contratto accordo rapporto relazione lettera offerta fattura "
    "contrato acuerdo informe carta oferta factura "
    "umowa raport list faktura avtal rapport brev offert faktura overeenkomst verslag offerte factuur".split()
)
_CONNECTIVES = frozenset(
    "with by from at mit vom bei con di del della dal avec de du z od med från av met van".split()
)
_POSSESSIVE = re.compile(r"['’]s\b")

_GENITIVE_ENDS = tuple(end for end, _ in _GENITIVES)
_SHORTEST = 4  # words with fewer letters, such as "gas" and "HVs", keep their endings
_MIN_SHARE = 0.6  # minimum share of a reference's words in a name; measured on the samples only
_NEAR_BEST = 0.85


def match_reference(reference: str, records: Iterable[DocumentRecord]) -> tuple[DocumentRecord, ...]:
    """Return the documents that a reference may mean, best first; empty if none matches well enough.

    A reference equal to a file name or title matches only that document. Otherwise the score is the share of
    the reference's words in the file name, title or type; words that are only in the tags count half. Words
    for the file's format, such as "e-mail", are ignored. All numbers of the reference must occur in the name,
    because numbers distinguish years, versions and models.
    """
    if not reference.strip():
        return ()
    documents = list(records)
    exact = [record for record in documents if _same_name(reference, record)]
    if exact:
        return tuple(exact)
    words = _with_months(_words(reference))
    if not words:
        return ()
    scored = [
        (
            _score(_without_format(words, record), _document_words(record), _words(" ".join(record.tags))),
            record,
        )
        for record in documents
    ]
    best = max((score for score, _ in scored), default=0.0)
    if best < _MIN_SHARE:
        return ()
    fitting = [(score, record) for score, record in scored if score >= best * _NEAR_BEST]
    return tuple(record for _, record in sorted(fitting, key=lambda pair: (-pair[0], pair[1].filename)))


def reference_query(reference: str) -> str:
    """Return a full Lucene query that finds documents by a reference, such as part of a title.

    Each word is also searched as a prefix, because the analyzer keeps "manual.pdf" whole, and with typos.
    Words consist of lower-case letters or digits, so none is an operator.
    """
    parts: list[str] = []
    for word in sorted(_words(reference)):
        parts += [word, f"{word}*"]
        if allowed := slips_allowed(word):
            parts.append(f"{word}~{allowed}")
    return " ".join(parts)


def spelled_as_named(reference: str, records: Iterable[DocumentRecord]) -> str:
    """Replace misspelt words of a reference with the closest words in the documents' names. Known words are
    kept.
    """
    vocabulary = {word for record in records for word in _WORD.findall(_naming_text(record).casefold())}
    known_words = vocabulary | {singular(word) for word in vocabulary}

    def right(match: re.Match[str]) -> str:
        word = match.group().casefold()
        if word in _FILLERS or word in known_words or singular(word) in known_words:
            return match.group()
        return nearest(word, vocabulary) or match.group()

    return _WORD.sub(right, reference)


def fits_whole(reference: str, record: DocumentRecord) -> bool:
    """Return whether every word of a reference occurs in the document's file name, title or type."""
    words = _without_format(_with_months(_words(reference)), record)
    return _same_name(reference, record) or (bool(words) and words <= _document_words(record))


def is_described(reference: str, record: DocumentRecord, opening: str = "") -> bool:
    """Return whether a document's name, author, date, summary or opening text has all words of a reference,
    such as "Priya's e-mail of 11 June". Nouns for kinds of documents and connectives are ignored.

    Args:
        opening: the first text of the document, if known.
    """
    words = _without_format(_with_months(_words(_POSSESSIVE.sub("", reference))), record)
    names = words - _KINDS - _CONNECTIVES
    date = (record.printed_date or "").split("-")
    parts = {
        _MONTH_NUMBERS.get(part, part) if place == 1 else part.lstrip("0") for place, part in enumerate(date)
    }
    text = " ".join((record.author or "", record.summary_brief, opening))
    return bool(names) and names <= _document_words(record) | _with_months(_words(text)) | parts


def is_plural(reference: str, records: Iterable[DocumentRecord]) -> bool:
    """Return whether the reference ends in a plural whose singular occurs in the documents' names, such as
    "annual reports".
    """
    words = [word for word in _WORD.findall(reference.casefold()) if not word.isdigit()]
    if not words or singular(words[-1]) == words[-1] or words[-1].endswith(_GENITIVE_ENDS):
        return False
    known_words = {word for record in records for word in _WORD.findall(_naming_text(record).casefold())}
    return words[-1] not in known_words and singular(words[-1]) in known_words


def naming_words(*texts: str) -> frozenset[str]:
    """Return the distinct words of the texts in lower case and singular, without fillers such as "the" and
    "file".
    """
    return frozenset(_words(" ".join(texts)))


def singular(word: str) -> str:
    """Return the singular of a lower-case word if it has a known English or German ending; otherwise return
    the word.
    """
    if len(word) < _SHORTEST or word.endswith("ss"):
        return word
    return next(
        (word[: -len(end)] + one for end, one in (*_GENITIVES, *_PLURALS) if word.endswith(end)), word
    )


def similarity(reference: str, name: str) -> float:
    """Return the similarity of two names from 0 to 1: the Dice coefficient of their letter trigrams.

    Word order, separators and the file suffix are ignored.
    """
    one, other = _trigrams(reference), _trigrams(name)
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0


def _trigrams(name: str) -> set[str]:
    words = (f" {word} " for word in _NAME_WORD.findall(_SUFFIX.sub("", name).casefold()))
    return {word[start : start + 3] for word in words for start in range(len(word) - 2)}


def _score(reference: set[str], words: set[str], of_tags: set[str]) -> float:
    numbers = {word for word in reference if word.isdigit()}
    if not numbers <= words:
        return 0.0
    return (len(reference & words) + len(reference & of_tags - words) / 2) / len(reference)


def _same_name(reference: str, record: DocumentRecord) -> bool:
    name = reference.strip().casefold()
    return name in (
        record.filename.casefold(),
        record.filename.rpartition(".")[0].casefold(),
        record.title.casefold(),
    )


def _without_format(words: set[str], record: DocumentRecord) -> set[str]:
    """Remove words that only name the document's format, such as "e-mail". If nothing else remains, keep all
    words.
    """
    suffix = record.filename.rpartition(".")[2].casefold()
    return words - _FORMAT_WORDS.get(suffix, frozenset()) or words


def _document_words(record: DocumentRecord) -> set[str]:
    words = _with_months(_words(_naming_text(record)))
    return words | {_MONTH_NUMBERS[word] for word in words if word in _MONTH_NUMBERS}


def _naming_text(record: DocumentRecord) -> str:
    return f"{record.filename} {record.title} {record.document_type or ''}"


def _with_months(words: set[str]) -> set[str]:
    """Replace month names with a common form, so that "March" matches "März" and the 03 in a file name."""
    return {MONTH_NAMES.get(word, word) for word in words}


def _words(text: str) -> set[str]:
    return {singular(word) for word in _WORD.findall(text.casefold()) if word not in _FILLERS}
