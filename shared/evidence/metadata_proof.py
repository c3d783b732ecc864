"""Checks statements against the metadata of a document, such as author, date and type. Pure."""

from collections.abc import Iterator, Mapping

from shared.evidence.alignment import normalise
from shared.retrieval.models import DocumentRecord

_NAMES = {
    "title": ("title",),
    "author": ("author", "authors", "written by", "by"),
    "published_by": ("published_by", "published by", "publisher"),
    "document_type": ("document_type", "document type", "type"),
    "department": ("department",),
    "document_date": ("document_date", "document date", "date", "dated"),
    "upload_date": ("upload_date", "upload date", "uploaded", "added"),
    "language": ("language",),
    "version": ("version",),
    "page_count": ("page_count", "page count", "pages"),
}
_SAYS_ITSELF = ("title", "author", "document_date", "upload_date", "department")
"""Fields whose value alone identifies them. Values such as `3` or `en` must follow the field name."""

_MIN_CHARS = 4


def prove_metadata(quote: str, record: DocumentRecord) -> str | None:
    """Return the metadata that a quotation states, such as `author: Jane Doe; date: 2024-05-01`. Return None
    if any part of the quotation is not metadata of the document.

    Values must be complete. Names may be written as in the prompt (`author="Jane Doe"`) or in words.
    """
    values = {name: _words(value) for name, value in _values(record).items()}
    rest = f"{_words(quote)} "
    statements: list[str] = []
    while rest.strip():
        form = next(_forms(rest, values), None)
        if form is None:
            return None
        name, length = form
        statements.append(f"{name.removeprefix('document_').replace('_', ' ')}: {_values(record)[name]}")
        rest = rest[length:]
    return "; ".join(statements) or None


def metadata_text(record: DocumentRecord) -> str:
    """Return the known metadata of a document, one field on each line."""
    return "\n".join(f"{name}: {value}" for name, value in _values(record).items())


def _forms(rest: str, values: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Yield the name of each metadata field that `rest` starts with, and the length in characters of its
    label and value.
    """
    for name, value in values.items():
        for label in (*_NAMES[name], ""):
            form = f"{_words(label)} {value} ".lstrip()
            says_itself = name in _SAYS_ITSELF and len(value) >= _MIN_CHARS
            if (label or says_itself) and rest.startswith(form):
                yield name, len(form)


def _words(text: str) -> str:
    return normalise(text.replace("=", " "))


def _values(record: DocumentRecord) -> dict[str, str]:
    """Return the known metadata fields of a document by name, with values formatted as in prompts."""
    values = {
        "title": record.title,
        "author": record.author,
        "published_by": record.published_by,
        "document_type": record.document_type,
        "department": record.department,
        "document_date": record.printed_date,
        "upload_date": record.upload_date.date().isoformat(),
        "language": record.language,
        "version": str(record.version),
        "page_count": str(record.page_count) if record.page_count else None,
    }
    return {name: value for name, value in values.items() if value}
