"""Readers of documents, and the sources of answers that they open."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Request

from functions.http.contracts import HTML
from functions.http.models import DocId
from functions.http.requests import Caller, Ready, SignInRedirect, caller_of
from shared import wiring
from shared.access.models import UserContext
from shared.access.security_filter import in_thread
from shared.answering.cited_pages import block_text, own_citation, source_rows
from shared.conversations.threads import owned_thread
from shared.documents.ids import is_conversation_id
from shared.documents.page_models import CitationQuery
from shared.documents.page_views import Cited
from shared.platform.concurrency import run_in_background
from shared.platform.errors import GroundworkError, NotAuthenticatedError, NotFoundError
from shared.platform.telemetry import get_logger
from shared.quality.recording import note_opening
from shared.wiring import Services


@dataclass(frozen=True)
class Reader:
    """A user who requests to read a document. Access has not been checked yet."""

    doc_id: str
    user: UserContext
    services: Services


async def reader_of(doc_id: DocId, user: Caller, services: Ready) -> Reader:
    """Return the caller as a reader of the document in the path."""
    return Reader(doc_id, await with_own_files(doc_id, user, services), services)


async def with_own_files(doc_id: str, user: UserContext, services: Services) -> UserContext:
    """Return the user, extended with access to a file that belongs to one of their conversations.

    This lets owners open the sources of an answer. Lists and searches don't use this function, so these files
    don't appear there.
    """
    state = await services.documents.get(doc_id) if is_conversation_id(doc_id) else None
    if state is None:
        return user
    with suppress(NotFoundError):
        await owned_thread(state.thread_id, user, services.threads)
        return in_thread(user, state.thread_id)
    return user


async def browsing_reader(req: Request, doc_id: DocId) -> Reader:
    """Authenticate a caller who may have opened the page in a browser, and return them as a reader of the
    document in the path.

    Raises:
        SignInRedirect: the caller is a browser without a session. After signing in, it returns to the page.
        NotAuthenticatedError: the caller is another client without a valid identity.
    """
    try:
        user = await caller_of(req)
    except NotAuthenticatedError:
        if HTML not in req.headers.get("accept", ""):
            raise
        parameters = {"doc": doc_id, "page": req.path_params.get("page", "1")}
        cited = {"run": req.query_params.get("run"), "cite": req.query_params.get("n")}
        query = urlencode({**parameters, **(cited if all(cited.values()) else {})})
        raise SignInRedirect(f"/web?{query}") from None
    services = await wiring.ready_services()
    return Reader(doc_id, await with_own_files(doc_id, user, services), services)


KnownReader = Annotated[Reader, Depends(reader_of)]
BrowsingReader = Annotated[Reader, Depends(browsing_reader)]


async def cited_by(reader: Reader, query: CitationQuery) -> Cited | None:
    """Return the citation that the query names, with the text of its source, or None if there is none. Also
    count, in the background, that the source was opened.
    """
    if not (query.run and query.n):
        return None
    citation = await own_citation(query.run, query.n, reader.doc_id, reader.user, reader.services)
    if citation is None:
        return None
    run_in_background(note_opening(query.run, query.n, reader.user, reader.services))
    if citation.kind == "table":
        return Cited(query.run, citation, rows=await source_rows(citation, reader.user, reader.services))
    return Cited(query.run, citation, await block_text(citation.block_id, reader.user, reader.services))


def note_opened(reader: Reader, query: CitationQuery) -> None:
    """Count, in the background, that the reader opened a source. Only sources that one of the reader's own
    runs cites are counted.
    """
    if query.run and query.n:
        run_in_background(_note_if_cited(reader, query))


async def _note_if_cited(reader: Reader, query: CitationQuery) -> None:
    try:
        if await own_citation(query.run, query.n, reader.doc_id, reader.user, reader.services):
            await note_opening(query.run, query.n, reader.user, reader.services)
    except GroundworkError as failed:
        get_logger().warning("quality.write_failed", kind="opening", error_type=failed.code)
