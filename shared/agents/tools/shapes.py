"""What results of several tools have in common (contracts.md, section 2), and fields of their arguments."""

from typing import Annotated, Any

from pydantic import Field

from shared.models.documents import DocumentRecord
from shared.models.search import Filters, Hit

DocumentFilters = Annotated[
    Filters,
    Field(
        description="Field name to value, list of values (any of them), or {start, end} for dates. Fields: "
        "doc_id, project_id, filename, document_type, department, author, language, tags, upload_date, "
        "page_count."
    ),
]
BlockIds = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=200)], ...],
    Field(description="Ids of blocks, as a search returned them; at most 50.", min_length=1, max_length=50),
]
Query = Annotated[
    str,
    Field(description="The question, standing alone.", min_length=1, max_length=8000, pattern=r"\S"),
]

_LISTED = {"doc_id", "filename", "title", "document_type", "upload_date", "summary_brief"}
_FOUND = _LISTED | {"author", "department", "language", "tags", "page_count"}


def listed_document(record: DocumentRecord) -> dict[str, Any]:
    """A document of a list."""
    return record.model_dump(mode="json", include=_LISTED)


def found_document(record: DocumentRecord) -> dict[str, Any]:
    """A document that was looked for by its metadata, with what was looked through."""
    return record.model_dump(mode="json", include=_FOUND)


def named_block(hit: Hit) -> dict[str, Any]:
    """A block without its text, which the model has from the search that found it."""
    return {
        "block_id": hit.block_id,
        "doc_id": hit.doc_id,
        "filename": hit.filename,
        "page_number": hit.page_number,
    }
