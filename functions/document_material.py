"""What views of a document are made from, gathered for one reader: rights first, then everything at once."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING

from functions.http_io import Request, read_query
from functions.identity import caller_of
from functions.ready import ready_services
from shared.errors import BadDocumentError, ConflictError, DependencyError, GroundworkError, NotFoundError
from shared.telemetry import get_logger

# Views are built from models that nothing else needs at the start.
if TYPE_CHECKING:
    from shared.core.document_views import Cited, Material
    from shared.models.blocks import Caption
    from shared.models.identity import UserContext
    from shared.models.ingestion import DocumentState
    from shared.models.page_views import PageSheet, Reading
    from shared.models.queries import CitationQuery
    from shared.services import Services

_noting: set[asyncio.Task[None]] = set()


@dataclass(frozen=True)
class Reader:
    """Who reads which document."""

    doc_id: str
    user: "UserContext"
    services: "Services"


async def reader_of(request: Request) -> Reader:
    """The caller, and the document that the address names. NotAuthenticatedError without an identity."""
    user = await caller_of(request)
    return Reader(str(request.path_params["doc_id"]), user, await ready_services())


async def material_of(reader: Reader, query: "CitationQuery") -> "tuple[Material, DocumentState]":
    """The document with its pieces, captions and the citation asked for.

    Raises:
        DocumentNotFoundError: there is none, or the caller may not read it.
    """
    # Imported when used: a worker that starts does not wait for it.
    from shared.agents.page_view import readable_document
    from shared.core.document_views import Material
    from shared.retrieval.together import both

    found = await readable_document(reader.doc_id, reader.user, reader.services)
    (reading, captions), cited = await both(
        both(_reading(reader, found.state), _captions(reader)), cited_by(reader, query)
    )
    material = Material(
        record=found.record,
        elements=reading.elements,
        page_count=reading.page_count or found.state.page_count,
        captions=captions,
        cited=cited,
    )
    return material, found.state


async def cited_by(reader: Reader, query: "CitationQuery") -> "Cited | None":
    """The citation, with its block's text; that its source was opened is noted beside."""
    from shared.agents.page_view import block_text, own_citation
    from shared.agents.quality.openings import note_opening
    from shared.core.document_views import Cited

    if not (query.run and query.n):
        return None
    citation = await own_citation(query.run, query.n, reader.doc_id, reader.user, reader.services)
    if citation is None:
        return None
    _in_background(note_opening(query.run, query.n, reader.user, reader.services))
    return Cited(query.run, citation, await block_text(citation.block_id, reader.user, reader.services))


def note_opened(reader: Reader, query: "CitationQuery") -> None:
    """Count that a source was opened, if it is one of the caller's own; nobody waits for it."""
    if query.run and query.n:
        _in_background(_note_if_cited(reader, query))


async def _note_if_cited(reader: Reader, query: "CitationQuery") -> None:
    from shared.agents.page_view import own_citation
    from shared.agents.quality.openings import note_opening

    try:
        if await own_citation(query.run, query.n, reader.doc_id, reader.user, reader.services):
            await note_opening(query.run, query.n, reader.user, reader.services)
    except GroundworkError as failed:
        get_logger().warning("quality.not_kept", kind="opening", error_type=failed.code)


async def sheet_of(
    material: "Material", state: "DocumentState", page_number: int, services: "Services"
) -> "tuple[PageSheet | None, bool]":
    """The sheet of a page, and whether the page has a picture.

    It is drawn for a page that is cited: else the picture itself has it drawn, and nobody waits for it here.
    """
    from shared.ingestion import page_files
    from shared.ingestion.page_pictures import has_pictures, page_sheet

    if not has_pictures(state.filename):
        return None, False
    cited = material.cited
    if cited is None or cited.citation.page_number != page_number:
        known = await page_files.get_sheet(services.blobs, state.doc_id, state.content_hash, page_number)
        return known, True
    try:
        return await page_sheet(state, page_number, services), True
    except (BadDocumentError, NotFoundError) as failed:
        _log(failed)
        return None, False
    except (ConflictError, DependencyError) as failed:  # it may be drawn when the picture is asked for
        _log(failed)
        return None, True


async def _reading(reader: Reader, state: "DocumentState") -> "Reading":
    from shared.agents.page_view import indexed_elements
    from shared.ingestion import page_files
    from shared.models.page_views import Reading

    kept = await page_files.get_reading(reader.services.blobs, reader.doc_id, state.content_hash)
    if kept is not None:
        return kept
    elements = await indexed_elements(reader.doc_id, reader.user, reader.services)
    return Reading(elements=elements, page_count=state.page_count)


async def _captions(reader: Reader) -> "dict[str, Caption]":
    from shared.ingestion import figure_store

    return await figure_store.captions(reader.services.blobs, reader.doc_id)


def _in_background(call: Coroutine[None, None, None]) -> None:
    task = asyncio.get_running_loop().create_task(call)
    _noting.add(task)  # a task that nobody holds may be collected before it ends
    task.add_done_callback(_noting.discard)


def _log(failed: GroundworkError) -> None:
    get_logger().warning("page.not_drawn", error_type=failed.code)


def citation_query(request: Request) -> "CitationQuery":
    """The citation that an address names. CallerError when it is not well formed."""
    from shared.models.queries import CitationQuery

    return read_query(request, CitationQuery)
