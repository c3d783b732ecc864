"""The calls by which documents are read page by page. A table: one row per route."""

from functions.http.models import (
    CachedHeaders,
    DocumentsQuery,
    DocumentStreamEvent,
    FileHeaders,
    IfMatchHeaders,
    KeyHeaders,
    ResumeHeaders,
    SearchBody,
    SearchResults,
)
from functions.http.openapi.operation import (
    BYTES,
    HTML,
    JSON,
    MARKDOWN,
    PDF,
    PNG,
    STREAM,
    Operation,
    Reply,
    json_reply,
)
from shared.documents.listing import DocumentDeleting, DocumentDetail, DocumentList
from shared.documents.page_models import CitationQuery, PageView, ReadableQuery, ReadableView
from shared.documents.requests import (
    AccessChange,
    MetadataCorrection,
    UploadForm,
    UploadRequest,
    UploadTicket,
)
from shared.platform.errors import (
    AccessDeniedError,
    BadDocumentError,
    CallerError,
    ConflictError,
    DocumentNotFoundError,
    IdempotencyKeyReusedError,
    InvalidQueryError,
    PayloadTooLargeError,
    PreconditionFailedError,
    RangeError,
    SlowBodyError,
)

_BODY = (CallerError, PayloadTooLargeError, SlowBodyError)
_CHANGE = (AccessDeniedError, DocumentNotFoundError, ConflictError)
_REPLAYED = "Idempotency-Replayed"
_SEARCH, _DOCUMENTS = "Search", "Documents"

SEARCH = (
    Operation(
        "POST",
        "search",
        "search",
        _SEARCH,
        "Passages and figures for a query, without an answer",
        (json_reply(200, "What was found, best first.", SearchResults),),
        (*_BODY, InvalidQueryError),
        body=SearchBody,
        costs=True,
    ),
)

READING = (
    Operation(
        "GET",
        "documents",
        "list_documents",
        _DOCUMENTS,
        "The documents the caller may see",
        (json_reply(200, "Those in work or failed first, then the newest.", DocumentList),),
        (CallerError, InvalidQueryError),
        query=DocumentsQuery,
    ),
    Operation(
        "GET",
        "documents/events",
        "get_document_events",
        _DOCUMENTS,
        "How far documents are, as it changes",
        (Reply(200, "Documents in work, then each change.", ((STREAM, DocumentStreamEvent),)),),
        (CallerError,),
        headers=ResumeHeaders,
    ),
    Operation(
        "GET",
        "documents/{doc_id}",
        "get_document",
        _DOCUMENTS,
        "One document, with the history of its ingestion",
        (
            json_reply(200, "The document.", DocumentDetail, "ETag"),
            Reply(304, "The caller has this state already.", (), ("ETag",)),
        ),
        (DocumentNotFoundError,),
        headers=CachedHeaders,
    ),
    Operation(
        "GET",
        "documents/{doc_id}/content",
        "get_document_content",
        _DOCUMENTS,
        "The file",
        (
            Reply(200, "All of it.", ((PDF, None), (BYTES, None)), ("ETag", "Accept-Ranges")),
            Reply(
                206,
                "The bytes that were asked for.",
                ((PDF, None), (BYTES, None)),
                ("ETag", "Accept-Ranges", "Content-Range"),
            ),
        ),
        (CallerError, DocumentNotFoundError, ConflictError, RangeError),
        query=CitationQuery,
        headers=FileHeaders,
    ),
    Operation(
        "GET",
        "documents/{doc_id}/figures/{name}",
        "get_document_figure",
        _DOCUMENTS,
        "One of its pictures",
        (
            Reply(200, "The picture.", ((PNG, None),), ("ETag",)),
            Reply(304, "The caller has it already.", (), ("ETag",)),
        ),
        (DocumentNotFoundError, ConflictError),
        headers=CachedHeaders,
    ),
)

WRITING = (
    Operation(
        "POST",
        "documents",
        "upload_document",
        _DOCUMENTS,
        "Upload a file through the app",
        (json_reply(202, "It lies there, and is being ingested.", DocumentDetail, "Location", _REPLAYED),),
        (*_BODY, ConflictError, BadDocumentError, IdempotencyKeyReusedError, DocumentNotFoundError),
        form=UploadForm,
        headers=KeyHeaders,
        costs=True,
    ),
    Operation(
        "POST",
        "documents/uploads",
        "make_upload_ticket",
        _DOCUMENTS,
        "An address for a large file, past the app",
        (json_reply(201, "Where to send it.", UploadTicket, "Location", _REPLAYED),),
        (*_BODY, ConflictError, BadDocumentError, IdempotencyKeyReusedError),
        body=UploadRequest,
        headers=KeyHeaders,
        costs=True,
    ),
    Operation(
        "PATCH",
        "documents/{doc_id}",
        "correct_document",
        _DOCUMENTS,
        "Correct its metadata",
        (json_reply(200, "The document.", DocumentDetail, "ETag"),),
        (*_BODY, *_CHANGE, PreconditionFailedError),
        body=MetadataCorrection,
        headers=IfMatchHeaders,
    ),
    Operation(
        "PUT",
        "documents/{doc_id}/access",
        "change_access",
        _DOCUMENTS,
        "Set who may read it",
        (json_reply(200, "The document.", DocumentDetail, "ETag"),),
        (*_BODY, *_CHANGE, PreconditionFailedError),
        body=AccessChange,
        headers=IfMatchHeaders,
    ),
    Operation(
        "POST",
        "documents/{doc_id}/reingest",
        "reingest_document",
        _DOCUMENTS,
        "Ingest it once more",
        (json_reply(202, "It is being ingested.", DocumentDetail, "Location"),),
        _CHANGE,
        costs=True,
    ),
    Operation(
        "DELETE",
        "documents/{doc_id}",
        "delete_document",
        _DOCUMENTS,
        "Delete it and everything made of it",
        (json_reply(202, "It is out of the list.", DocumentDeleting),),
        (*_CHANGE, PreconditionFailedError),
        headers=IfMatchHeaders,
    ),
)

_PAGE_CALLS_DOCUMENTS = "Documents"

PAGES = (
    Operation(
        "GET",
        "documents/{doc_id}/pages/{page}",
        "get_document_page",
        _PAGE_CALLS_DOCUMENTS,
        "A page with its picture, the cited passage marked",
        (Reply(200, "The page.", ((HTML, None), (JSON, PageView))),),
        (CallerError, DocumentNotFoundError),
        query=CitationQuery,
    ),
    Operation(
        "GET",
        "documents/{doc_id}/pages/{page}/image",
        "get_document_page_image",
        _PAGE_CALLS_DOCUMENTS,
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
        _PAGE_CALLS_DOCUMENTS,
        "Its whole text, a part at a time",
        (Reply(200, "A part.", ((HTML, None), (JSON, ReadableView), (MARKDOWN, None))),),
        (CallerError, DocumentNotFoundError),
        query=ReadableQuery,
    ),
)
