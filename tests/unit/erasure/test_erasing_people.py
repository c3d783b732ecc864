"""Tests for erasing a user with fake services: all of their data is deleted, and nothing of other users."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.access.owner_ids import owner_prefix
from shared.answering.runs import begin_run
from shared.documents.state import DocumentState, Rights
from shared.erasure import passes, threads
from shared.erasure.models import ErasedCounts
from shared.erasure.policy import MAX_PASSES
from shared.erasure.requests import ask_for_erasure, erasure_of, resume_user_erasures
from shared.ingestion.uploads import uploads_of
from shared.platform.blobs import BlobProperties
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.names import DOCUMENTS, ERASURES_QUEUE, WORK
from shared.runs.models import ChatRequest
from tests.fakes.dying import Death, Died
from tests.unit.erasure.erasing_fakes import (
    PORTS,
    Orchestrations,
    erase,
    make_passes,
    one_pass,
    stored_of,
    traces,
    two_lives,
)

COUNTS = ErasedCounts(
    threads=2,
    runs=4,
    runs_at_work=1,
    summaries=1,
    memories=2,
    conversations=1,
    chat_messages=1,
    sessions=1,
    quality_records=4,
    idempotency_keys=1,
    limits=1,
    workspace_files=1,
    queue_messages=1,
)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the delay of 15 minutes between passes."""
    monkeypatch.setattr(passes, "LAST_PASS_AFTER_S", 0.0)
    monkeypatch.setattr(threads, "_READERS_S", 0.0)


async def test_what_is_at_work_is_ended_first_and_its_history_goes_last() -> None:
    services, anna, _ = await two_lives()
    at_work = Orchestrations()
    await ask_for_erasure("anna-leaves", "keep", services)
    (message,) = services.queues.take(ERASURES_QUEUE)  # type: ignore[attr-defined]
    assert "anna" not in message
    await services.queues.send(ERASURES_QUEUE, message)
    await make_passes(services, at_work)
    assert anna.at_work.run_id in at_work.stopped
    runs = {anna.at_work.run_id, anna.answered.run_id}
    assert runs <= set(at_work.forgotten)
    summary_id, key = anna.ids[-2:]
    assert {summary_id, f"{key}-reply"} <= set(at_work.forgotten)


async def test_an_erasure_that_is_killed_anywhere_goes_on_and_counts_nothing_twice() -> None:
    """Kill the process before every 23rd service call, and let the next process finish."""
    for calls in range(0, 600, 23):
        services, anna, ben = await two_lives()
        before = stored_of(services, ben.marks)
        at_work = Orchestrations()
        await ask_for_erasure("anna-leaves", "keep", services)
        try:
            await make_passes(services, at_work, Death(calls).mortal(services, dict.fromkeys(PORTS, ())))
        except Died:
            services.queues.take(ERASURES_QUEUE)  # type: ignore[attr-defined]
            assert await resume_user_erasures(datetime.now(UTC), services) == 1, calls
            await make_passes(services, at_work)
        else:
            assert calls > 100
            return
        assert traces(services, anna.marks) == [], calls
        after = stored_of(services, ben.marks)
        assert after == before, calls
        ended = await erasure_of("anna-leaves", services.blobs)
        counts = ended.erased.model_dump(exclude=_COUNTED_AS_DELETED)
        assert (ended.status, counts) == ("completed", COUNTS.model_dump(exclude=_COUNTED_AS_DELETED)), calls
    raise AssertionError("An erasure takes more calls than that.")


_COUNTED_AS_DELETED = {
    *("conversations", "quality_records", "idempotency_keys", "limits", "queue_messages"),
    "workspace_files",
}


@pytest.mark.parametrize("request_json", [b"{}", None])
async def test_runs_without_a_readable_request_are_erased(request_json: bytes | None) -> None:
    services, _, _ = await two_lives()
    prefix = owner_prefix("anna-leaves", services.settings.identity.owner_id_key)
    place = f"runs/{prefix}{'5' * 16}"
    await services.blobs.write(WORK, f"{place}/a-value.json", b"a trace")
    if request_json is not None:
        await services.blobs.write(WORK, f"{place}/request.json", request_json)
    at_work = Orchestrations()
    await erase("anna-leaves", services, at_work)
    ended = await erasure_of("anna-leaves", services.blobs)
    assert (ended.status, ended.erased.runs, ended.erased.summaries) == ("completed", 5, 1)
    assert [one.name async for one in services.blobs.list_blobs(WORK, f"runs/{prefix}")] == []
    assert f"{prefix}{'5' * 16}" in at_work.forgotten


async def test_an_erasure_reads_no_run_of_anybody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services, anna, ben = await two_lives()
    touched: list[str] = []
    read, listed, rows = services.blobs.read, services.blobs.list_blobs, services.runs._table.query

    async def noting(container: str, name: str) -> bytes:
        touched.append(name)
        return await read(container, name)

    async def noting_names(container: str, prefix: str = "") -> AsyncIterator[BlobProperties]:
        async for blob in listed(container, prefix):
            touched.append(blob.name)
            yield blob

    async def noting_rows(condition: str = "", **page: Any) -> AsyncIterator[Mapping[str, Any]]:
        async for row in rows(condition, **page):
            touched.append(str(row["PartitionKey"]))
            yield row

    monkeypatch.setattr(services.blobs, "read", noting)
    monkeypatch.setattr(services.blobs, "list_blobs", noting_names)
    monkeypatch.setattr(services.runs._table, "query", noting_rows)
    await erase("anna-leaves", services, Orchestrations())
    key = services.settings.identity.owner_id_key
    mine, others = (owner_prefix(one.user.user_id, key) for one in (anna, ben))
    assert any(mine in name for name in touched)
    assert [name for name in touched if others in name and name.startswith("runs/")] == []
    assert not {name for name in touched if name.startswith(others)}
    assert traces(services, anna.marks) == []


async def test_a_pass_that_comes_early_or_twice_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "LAST_PASS_AFTER_S", 900.0)
    services, _, _ = await two_lives()
    at_work = Orchestrations()
    await ask_for_erasure("anna-leaves", "keep", services)
    await make_passes(services, at_work)
    waiting = await erasure_of("anna-leaves", services.blobs)
    assert (waiting.status, waiting.passes) == ("running", 1)
    assert waiting.next_pass_at is not None
    assert waiting.next_pass_at > datetime.now(UTC) + timedelta(minutes=14)
    assert await resume_user_erasures(datetime.now(UTC), services) == 0
    await ask_for_erasure("anna-leaves", "keep", services)
    await make_passes(services, at_work)
    assert (await erasure_of("anna-leaves", services.blobs)).passes == 1


async def test_a_person_who_asks_on_is_erased_again_and_in_the_end_given_up() -> None:
    services, anna, _ = await two_lives()
    at_work = Orchestrations()
    await ask_for_erasure("anna-leaves", "keep", services)
    for _ in range(MAX_PASSES + 1):
        await begin_run(ChatRequest(question=anna.words), anna.user, services)
        await one_pass(services, at_work)
    ended = await erasure_of("anna-leaves", services.blobs)
    assert (ended.status, ended.passes) == ("failed", MAX_PASSES)
    assert "sign-in" in str(ended.reason)
    await erase("anna-leaves", services, at_work)
    assert (await erasure_of("anna-leaves", services.blobs)).status == "completed"
    assert traces(services, anna.marks) == []


async def test_a_question_between_the_passes_is_erased_and_counted() -> None:
    services, anna, _ = await two_lives()
    at_work = Orchestrations()
    await ask_for_erasure("anna-leaves", "keep", services)
    await one_pass(services, at_work)
    late = await begin_run(ChatRequest(question=anna.words), anna.user, services)
    await make_passes(services, at_work)
    ended = await erasure_of("anna-leaves", services.blobs)
    assert (ended.status, ended.passes, ended.erased.runs) == ("completed", 3, 5)
    assert traces(services, (*anna.marks, late.run_id)) == []


def _state(doc_id: str, owner_id: str, *readers: str) -> DocumentState:
    rights = Rights(acl=(*readers, owner_id), owner_id=owner_id)
    now = datetime.now(UTC)
    return DocumentState(
        doc_id=doc_id,
        blob_name=f"{doc_id}.md",
        filename=f"{doc_id}.md",
        rights=rights,
        wanted_rights=rights,
        updated_at=now,
    )


@pytest.mark.parametrize("wish", ["keep", "delete"])
async def test_documents_stay_unless_they_are_theirs_alone_and_it_is_asked_for(wish: str) -> None:
    services, _, _ = await two_lives()
    for state in (
        _state("secret", "anna-leaves"),
        _state("shared", "anna-leaves", "engineering"),
        _state("foreign", "ben-stays", "anna-leaves"),
        _state("other", "ben-stays"),
    ):
        await services.documents.create(state)
        rights = {"owner_id": state.rights.owner_id, "access_control_list": list(state.rights.acl)}
        row = {"doc_id": state.doc_id, "filename": state.filename, "status": "ready", **rights}
        await services.documents_index.upload([row])
    folder = uploads_of("anna-leaves")
    for name in ("never-came.md.acl.json", "there.md.acl.json", "there.md"):
        await services.blobs.write(DOCUMENTS, folder + name, b"anna-leaves")
    at_work = Orchestrations()

    async def delete_document(state: DocumentState) -> None:
        at_work.deleted.append(state.doc_id)
        await services.documents.delete(state)

    at_work.delete_document = delete_document  # type: ignore[method-assign]
    await erase("anna-leaves", services, at_work, "delete" if wish == "delete" else "keep")
    ended = await erasure_of("anna-leaves", services.blobs)
    kept_counts = {one.what: one.count for one in ended.kept}
    assert at_work.deleted == (["secret"] if wish == "delete" else [])
    assert ended.erased.documents == (1 if wish == "delete" else 0)
    assert kept_counts["documents of theirs that others may read"] == 1
    assert kept_counts["documents of others whose access list names them"] == 1
    assert kept_counts.get("documents that only they may read") == (None if wish == "delete" else 1)
    assert ended.erased.unused_uploads == 1
    left = [one.name async for one in services.blobs.list_blobs(DOCUMENTS, folder)]
    assert left == [f"{folder}there.md", f"{folder}there.md.acl.json"]


async def test_a_document_that_takes_longer_than_a_pass_is_counted_once() -> None:
    services, _, _ = await two_lives()
    await services.documents.create(_state("secret", "anna-leaves"))
    at_work = Orchestrations()

    async def gone_in_the_third_pass(state: DocumentState) -> None:
        at_work.deleted.append(state.doc_id)
        if len(at_work.deleted) == 3:
            await services.documents.delete(state)

    at_work.delete_document = gone_in_the_third_pass  # type: ignore[method-assign]
    await erase("anna-leaves", services, at_work, "delete")
    ended = await erasure_of("anna-leaves", services.blobs)
    assert (ended.status, ended.passes, ended.erased.documents) == ("completed", 4, 1)


async def test_one_that_treats_documents_otherwise_has_to_wait() -> None:
    services, _, _ = await two_lives()
    await ask_for_erasure("anna-leaves", "keep", services)
    with pytest.raises(ConflictError):
        await ask_for_erasure("anna-leaves", "delete", services)
    await make_passes(services, Orchestrations())
    assert (await ask_for_erasure("anna-leaves", "delete", services)).status == "running"


async def test_of_whom_nothing_is_kept_nothing_is_counted_and_the_report_goes_in_time() -> None:
    services, _, _ = await two_lives()
    with pytest.raises(NotFoundError):
        await erasure_of("nobody", services.blobs)
    await erase("nobody", services, Orchestrations())
    ended = await erasure_of("nobody", services.blobs)
    assert (ended.status, ended.erased) == ("completed", ErasedCounts())
    reports = [one.name async for one in services.blobs.list_blobs(WORK, "erasures/")]
    assert len(reports) == 1
    assert b"nobody" not in await services.blobs.read(WORK, reports[0])
    await resume_user_erasures(datetime.now(UTC) + timedelta(days=31), services)
    with pytest.raises(NotFoundError):
        await erasure_of("nobody", services.blobs)


async def test_a_report_that_nobody_can_read_keeps_no_other_from_going_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    services, _, _ = await two_lives()
    await services.blobs.write(WORK, "erasures/0.json", b'{"user_id": ["somebody"]}')
    await ask_for_erasure("anna-leaves", "keep", services)
    assert await resume_user_erasures(datetime.now(UTC) + timedelta(seconds=1), services) == 1
    assert "user_erasure.unreadable" in caplog.text
    assert "somebody" not in caplog.text
