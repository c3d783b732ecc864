"""The calls by which documents are read page by page. A table: one row per route."""

from functions.openapi.operation import HTML, JSON, MARKDOWN, PNG, Operation, Reply
from shared.errors import BadDocumentError, CallerError, ConflictError, DocumentNotFoundError
from shared.models.page_views import PageView, ReadableView
from shared.models.queries import CachedHeaders, CitationQuery, ReadableQuery

_DOCUMENTS = "Documents"

PAGES = (
    Operation(
        "GET",
        "documents/{doc_id}/pages/{page}",
        "get_document_page",
        _DOCUMENTS,
        "A page with its picture, the cited passage marked",
        (Reply(200, "The page.", ((HTML, None), (JSON, PageView))),),
        (CallerError, DocumentNotFoundError),
        query=CitationQuery,
    ),
    Operation(
        "GET",
        "documents/{doc_id}/pages/{page}/image",
        "get_document_page_image",
        _DOCUMENTS,
        "The picture of a page",
        (
            Reply(200, "The picture.", ((PNG, None),), ("ETag",)),
            Reply(304, "The caller has it already.", (), ("ETag",)),
        ),
        (DocumentNotFoundError, ConflictError, BadDocumentError),
        headers=CachedHeaders,
    ),
    Operation(
        "GET",
        "documents/{doc_id}/readable",
        "get_readable_document",
        _DOCUMENTS,
        "Its whole text, a part at a time",
        (Reply(200, "A part.", ((HTML, None), (JSON, ReadableView), (MARKDOWN, None))),),
        (CallerError, DocumentNotFoundError),
        query=ReadableQuery,
    ),
)
