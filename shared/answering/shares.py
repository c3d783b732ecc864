"""Shares of answers: links through which readers of all documents that an answer was written from can see it.

Nothing is filtered. The model wrote each statement with all documents in view, so a reader who can't read one
of them, in the version that was used, sees the question alone.

A share is stored below its run (`run-log/{run_id}/shares/`), so that it is erased with it. A pointer in
`work/shares/` leads from its random id to the run. Every refusal takes the same reads and looks the same.
"""

import re
import secrets
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from shared.access.access_lists import with_ids
from shared.access.directory import GroupDirectory
from shared.access.models import UserContext
from shared.access.security_filter import may_read
from shared.answering.provenance import stored_provenance
from shared.answering.services import AnsweringServices
from shared.answering.share_models import (
    MAX_SHARE_DAYS,
    NeededDocument,
    Share,
    SharedAnswer,
    SharedView,
    ShareList,
    ShareObstacle,
    ShareOrder,
    SharePointer,
    StoredShare,
)
from shared.conversations.models import Thread
from shared.documents.services import DocumentServices
from shared.evidence.models import Citation
from shared.platform.blobs import BlobStore, find_model, read_model, write_model
from shared.platform.concurrency import run_together
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.names import RUN_LOG, WORK
from shared.retrieval.document_rows import readable_rows
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.fresh_urls import refresh_answer
from shared.runs.journal import committed_answer
from shared.runs.models import RunAnswer, RunRecord
from shared.runs.provenance import UNKNOWN, Provenance, UsedDocument

POINTERS = "shares/"
NO_SHARE = "This share doesn't exist or was revoked."
_ID = re.compile(r"[A-Za-z0-9_-]{32}")
# A valid id that is never generated, so looking it up never finds a share.
_NO_ID = "-" * 32
# Maximum number of earlier answers that a shared answer may depend on. With more, it can't be shared.
_MOST_RUNS = 500
_AT_ONCE = 16
# Query parameters that identify the owner's run and citation, which readers of a share must not learn.
_OF_A_RUN = frozenset({"run", "n"})


async def share_run(
    record: RunRecord,
    order: ShareOrder,
    user: UserContext,
    services: AnsweringServices,
    directory: GroupDirectory,
) -> Share:
    """Create a share of the answer of a completed run of the user.

    Raises:
        NotFoundError: sharing is off, or the run was erased.
        ConflictError: the run has no answer, or the answer can't be shared.
        AccessDeniedError: the audience is the organisation or everyone, and the user lacks PUBLISH_ROLE.
        CallerError: an addressee is unknown.
    """
    _require_on(services)
    if record.status != "completed":
        raise ConflictError("The run has no answer to share.", "Wait until the run is completed.")
    audience = await with_ids(order.audience, user, directory, services.settings)
    sources = await _sources_of(record, services)
    if obstacles := await _obstacles(sources, user, services):
        raise ConflictError(
            f"The answer can't be shared: {', '.join(obstacles)}.",
            "docs/access.md explains these reasons.",
        )
    now = datetime.now(UTC)
    share = StoredShare(
        share_id=secrets.token_urlsafe(24),
        run_id=record.run_id,
        audience=audience,
        shared_by=user.name or "",
        created_at=now,
        expires_at=now + timedelta(days=order.days),
        documents=sources.documents,
    )
    await write_model(services.blobs, RUN_LOG, _share_path(record.run_id, share.share_id), share)
    await write_model(services.blobs, WORK, _pointer_path(share.share_id), SharePointer(run_id=record.run_id))
    if await services.runs.get(record.run_id) is None:  # erased in the meantime
        await _delete(record.run_id, share.share_id, services.blobs)
        raise NotFoundError("The run was erased.")
    return _view(share)


async def list_shares(record: RunRecord, user: UserContext, services: AnsweringServices) -> ShareList:
    """Return the active shares of a run, the documents that readers need, and the reasons against sharing it.

    Raises:
        NotFoundError: sharing is off.
    """
    _require_on(services)
    sources = await _sources_of(record, services)
    documents = DocumentSearch(SecuredIndex(services.documents_index, user, services.documents))
    ids = list(dict.fromkeys(one.doc_id for one in sources.documents))
    names = await documents.get_many(ids)
    now = datetime.now(UTC)
    active = [share async for share in _shares_of(record.run_id, services.blobs) if share.expires_at > now]
    return ShareList(
        shares=tuple(_view(share) for share in sorted(active, key=lambda one: one.created_at, reverse=True)),
        documents=tuple(
            NeededDocument(doc_id=doc_id, filename=names[doc_id].filename if doc_id in names else "")
            for doc_id in ids
        ),
        obstacles=await _obstacles(sources, user, services),
    )


async def revoke_share(run_id: str, share_id: str, services: AnsweringServices) -> None:
    """Revoke a share with immediate effect.

    Raises:
        NotFoundError: sharing is off, or the run has no such share.
    """
    _require_on(services)
    stored_id = share_id if _ID.fullmatch(share_id) else _NO_ID
    if await services.blobs.properties(RUN_LOG, _share_path(run_id, stored_id)) is None:
        raise NotFoundError(NO_SHARE, "The list of the run's shares contains their ids.")
    await _delete(run_id, stored_id, services.blobs)


class OpenedShare:
    """An opened share: what the caller may see, and the run that it belongs to.

    Attributes:
        doc_ids: documents of the answer; empty if it isn't shown.
    """

    def __init__(self, view: SharedView, run_id: str, doc_ids: tuple[str, ...]) -> None:
        self.view = view
        self.run_id = run_id
        self.doc_ids = doc_ids


async def open_share(share_id: str, user: UserContext, services: AnsweringServices) -> OpenedShare | None:
    """Return the share as the user may see it now. Return None for any reason that the user may not see it or
    it doesn't exist.

    Raises:
        DependencyError: a store failed.
    """
    share, record, thread = await _load(share_id, services)
    is_open = services.settings.conversations.sharing and share is not None and record is not None
    if not is_open or share is None or record is None or not _is_shown(record, thread):
        return None
    is_addressee = user.user_id == record.owner_id or may_read(user, share.audience)
    if share.expires_at <= datetime.now(UTC) or not is_addressee:
        return None
    answer = await _answer_for(user, share, services)
    view = SharedView(
        question=record.question,
        shared_by=share.shared_by,
        expires_at=share.expires_at,
        answer=answer,
    )
    doc_ids = tuple(dict.fromkeys(one.doc_id for one in share.documents)) if answer else ()
    return OpenedShare(view, record.run_id, doc_ids)


async def end_shares(run_id: str, blobs: BlobStore) -> None:
    """Delete all shares of a run, which revokes them."""
    async for name in _names_of(run_id, blobs):
        await _delete(run_id, name, blobs)


async def purge_shares(now: datetime, blobs: BlobStore) -> int:
    """Delete the shares that are older than the longest lifetime of a share, and return their number."""
    limit = now - timedelta(days=MAX_SHARE_DAYS)
    old = [
        one.name.removeprefix(POINTERS).removesuffix(".json")
        async for one in blobs.list_blobs(WORK, POINTERS)
        if one.modified_at is not None and one.modified_at < limit
    ]
    for share_id in old:
        pointer = await find_model(blobs, WORK, _pointer_path(share_id), SharePointer)
        await _delete(pointer.run_id if pointer else _NO_ID, share_id, blobs)
    return len(old)


async def _load(
    share_id: str, services: AnsweringServices
) -> tuple[StoredShare | None, RunRecord | None, Thread | None]:
    """Load a share, its run and its thread. Each of the three is None if it doesn't exist.

    The number of reads is always the same, so that response times don't reveal whether a share exists.
    """
    stored_id = share_id if _ID.fullmatch(share_id) else _NO_ID
    blobs = services.blobs
    pointer = await find_model(blobs, WORK, _pointer_path(stored_id), SharePointer)
    run_id = pointer.run_id if pointer else _NO_ID
    share, record = await run_together(
        find_model(blobs, RUN_LOG, _share_path(run_id, stored_id), StoredShare), services.runs.get(run_id)
    )
    owner_id, thread_id = (record.owner_id, record.thread_id) if record else (_NO_ID, _NO_ID)
    return share, record, await services.threads.get(owner_id, thread_id)


def _is_shown(record: RunRecord, thread: Thread | None) -> bool:
    """Return whether the thread still shows the run, which is false after it was cleared or deleted."""
    return thread is not None and not thread.is_deleted and record.turn > thread.cleared_count


async def _answer_for(
    user: UserContext, share: StoredShare, services: AnsweringServices
) -> SharedAnswer | None:
    """Return the answer, or None unless the user can read all its documents in the versions that were
    used.
    """
    if not await _may_read_all(share.documents, user, services):
        return None
    try:
        answer = await committed_answer(share.run_id, services.blobs, services.run_log)
    except NotFoundError:  # erased in the meantime
        return None
    answer = await refresh_answer(answer, user, services)
    # Check again, because access may have been withdrawn while the answer was being read.
    return _shared_view(answer) if await _may_read_all(share.documents, user, services) else None


def _shared_view(answer: RunAnswer) -> SharedAnswer:
    return SharedAnswer(
        text=answer.text,
        language=answer.language,
        citations=tuple(_without_run(citation) for citation in answer.citations),
        figures=answer.figures,
    )


def _without_run(citation: Citation) -> Citation:
    """Return the citation without the run id and the citation number in its URL."""
    parts = urlsplit(citation.url)
    if parts.netloc:
        return citation
    query = urlencode([(name, value) for name, value in parse_qsl(parts.query) if name not in _OF_A_RUN])
    return citation.model_copy(update={"url": urlunsplit(parts._replace(query=query))})


async def _may_read_all(
    documents: Iterable[UsedDocument], user: UserContext, services: DocumentServices
) -> bool:
    needed = list(documents)
    rows = await readable_rows((one.doc_id for one in needed), user, services.documents)
    return all(one.doc_id in rows and rows[one.doc_id].version == one.version for one in needed)


async def _obstacles(
    sources: Provenance, user: UserContext, services: AnsweringServices
) -> tuple[ShareObstacle, ...]:
    """Return the reasons why an answer can't be shared. `changed` means that its owner can no longer read all
    its sources.
    """
    is_changed = not await _may_read_all(sources.documents, user, services)
    return (*sources.obstacles, *(("changed",) if is_changed else ()))


async def _sources_of(record: RunRecord, services: AnsweringServices) -> Provenance:
    """Return the provenance of an answer, and of all earlier answers that its prompts contained."""
    parts: list[Provenance] = []
    waiting, visited = [record.run_id], {record.run_id}
    while waiting and len(visited) <= _MOST_RUNS:
        each = await run_together(*(_own_sources(run_id, services) for run_id in waiting), at_once=_AT_ONCE)
        parts += [own for own, _ in each]
        waiting = sorted({run_id for _, earlier in each for run_id in earlier} - visited)
        visited.update(waiting)
    return Provenance.joined((*parts, UNKNOWN) if waiting else parts)


async def _own_sources(run_id: str, services: AnsweringServices) -> tuple[Provenance, list[str]]:
    """Return the provenance of one run, and the ids of the runs whose answers its prompts may have
    contained.
    """
    record, own = await run_together(services.runs.get(run_id), stored_provenance(run_id, services.blobs))
    if record is None:
        return UNKNOWN, []
    if record.status in ("failed", "cancelled"):  # its text is not part of any later prompt
        return Provenance(), []
    if not own.is_follow_up:
        return own, [*own.run_ids]
    thread = await services.threads.get(record.owner_id, record.thread_id)
    if not _is_shown(record, thread):
        return UNKNOWN, []
    # The prompts may contain a summary of the conversation, which may cover any earlier turn.
    turns = await services.threads.turns(record.owner_id, record.thread_id, _MOST_RUNS + 1, record.turn)
    earlier = [turn.run_id for turn in turns if turn.status != "erased"]
    too_many = len(turns) > _MOST_RUNS
    return Provenance.joined((own, UNKNOWN) if too_many else (own,)), [*own.run_ids, *earlier]


async def _shares_of(run_id: str, blobs: BlobStore) -> AsyncIterator[StoredShare]:
    async for share_id in _names_of(run_id, blobs):
        try:
            yield await read_model(blobs, RUN_LOG, _share_path(run_id, share_id), StoredShare)
        except NotFoundError:  # revoked in the meantime
            continue


async def _names_of(run_id: str, blobs: BlobStore) -> AsyncIterator[str]:
    folder = f"{run_id}/shares/"
    names = [one.name async for one in blobs.list_blobs(RUN_LOG, folder)]
    for name in names:
        yield name.removeprefix(folder).removesuffix(".json")


async def _delete(run_id: str, share_id: str, blobs: BlobStore) -> None:
    # Delete the share first. If the second deletion fails, the remaining pointer gives no access.
    await blobs.delete(RUN_LOG, _share_path(run_id, share_id))
    await blobs.delete(WORK, _pointer_path(share_id))


def _view(share: StoredShare) -> Share:
    return Share(
        share_id=share.share_id,
        url=f"/web?view=shared&share={share.share_id}",
        audience=share.audience,
        created_at=share.created_at,
        expires_at=share.expires_at,
    )


def _require_on(services: AnsweringServices) -> None:
    if not services.settings.conversations.sharing:
        raise NotFoundError("Sharing is switched off here.", "An operator can switch it on with SHARING.")


def _share_path(run_id: str, share_id: str) -> str:
    return f"{run_id}/shares/{share_id}.json"


def _pointer_path(share_id: str) -> str:
    return f"{POINTERS}{share_id}.json"
