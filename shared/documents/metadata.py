"""Metadata by rule: what can be said of a document when no model says it, and how corrections win.

Pure. The model's description is always preferred; a document is never held up for the want of one.
"""

import re
from collections import Counter
from pathlib import PurePosixPath

from shared.documents.models import Corrections
from shared.evidence.text import split_sentences
from shared.retrieval.models import DocumentMetadata, DocumentRecord

_STOP_WORDS = {
    "en": frozenset("the and of to in is that for with are this be on as by it from or at".split()),
    "de": frozenset("der die und das ist den von zu mit nicht ein eine für auf im dem des sich auch".split()),
    "fr": frozenset("le la les et des est une dans pour que qui sur pas du au avec sont par plus".split()),
    "es": frozenset("el la los de que y en un una por con para del las se es no su como más".split()),
    "it": frozenset("il di che la e un per non una del sono con della gli nel alla le dei si come".split()),
    "nl": frozenset("de het een van en in is dat op te zijn met voor niet aan er door om ook".split()),
}
_WORD = re.compile(r"[^\W\d_]+")
_LANGUAGE = re.compile(r"([a-z]{2}|und)(?:[-_][a-z0-9]+)*")  # "en", "en-us"
_SAMPLE_WORDS = 600
_BRIEF_SENTENCES = 2
_STANDARD_SENTENCES = 8
_BRIEF_CHARS = 400
_STANDARD_CHARS = 1500
_TITLE_CHARS = 200
EDITABLE_FIELDS = frozenset(
    {
        "title",
        "document_type",
        "author",
        "department",
        "language",
        "tags",
        "summary_brief",
        "summary_standard",
    }
)


def describe_by_rule(
    filename: str, own_title: str | None, heading: str | None, opening: str
) -> DocumentMetadata:
    """Title from the file's properties, its first heading or its name; summaries from its first sentences."""
    stem = _stem(filename)
    sentences = [sentence for sentence in split_sentences(opening) if len(sentence.split()) > 3]
    return DocumentMetadata(
        title=(own_title or heading or stem or filename)[:_TITLE_CHARS],
        author=None,
        document_type="document",
        department=None,
        date=None,
        language=guess_language(opening),
        tags=(),
        summary_brief=_cut(" ".join(sentences[:_BRIEF_SENTENCES]), _BRIEF_CHARS),
        summary_standard=_cut(" ".join(sentences[:_STANDARD_SENTENCES]), _STANDARD_CHARS),
    )


def guess_language(text: str) -> str:
    """ISO 639-1 code by the commonest small words; "und" (undetermined) when none of six languages shows."""
    words = Counter(word.lower() for word in _WORD.findall(text)[:_SAMPLE_WORDS])
    scores = {
        language: sum(words[word] for word in stop_words) for language, stop_words in _STOP_WORDS.items()
    }
    best = max(scores, key=lambda language: scores[language])
    return best if scores[best] else "und"


def with_language_code(metadata: DocumentMetadata, opening: str) -> DocumentMetadata:
    """The metadata with an ISO 639-1 code as language: what is none ("English") is guessed from the text."""
    match = _LANGUAGE.fullmatch(metadata.language.strip().lower())
    language = match[1] if match else guess_language(opening)
    return metadata.model_copy(update={"language": language})


def under_another_name(metadata: DocumentMetadata, old: str, new: str, opening: str) -> DocumentMetadata:
    """What was said of a file, for a copy of it: a title that was the file's name gives way to the new name.

    Args:
        old, new: file names.
        opening: of the text; a title that stands there was not taken from the name.
    """
    title = _in_words(metadata.title).casefold()
    is_own = title in _in_words(opening).casefold()
    if is_own or title not in (_stem(old).casefold(), _in_words(old).casefold()):
        return metadata
    return metadata.model_copy(update={"title": _stem(new)[:_TITLE_CHARS]})


def with_corrections(record: DocumentRecord, corrections: Corrections) -> DocumentRecord:
    """The record with the fields that a person corrected as the person left them."""
    kept = {field: value for field, value in corrections.items() if field in EDITABLE_FIELDS}
    return record.model_copy(update={**kept, "edited_fields": tuple(sorted(kept))})


def _stem(filename: str) -> str:
    """A file's name in words: without its suffix, underscores as blanks."""
    return _in_words(PurePosixPath(filename).stem)


def _in_words(text: str) -> str:
    return " ".join(re.split(r"[_\s]+", text)).strip()


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return text[: text.rfind(" ", 0, limit)].rstrip() + " …"
