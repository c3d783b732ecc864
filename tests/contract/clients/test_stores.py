"""The contracts of `RunStore` and `DocumentStore`, in memory and with Azurite's tables."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from shared.documents.open_work import OpenWork, Place
from shared.documents.state import DocumentState, Rights
from shared.documents.state_store import DocumentStore
from shared.platform.errors import ConflictError, DependencyError, NotFoundError
from shared.platform.tables import Table
from shared.runs.models import Feedback, RunRecord
from shared.runs.plan import TodoItem
from shared.runs.run_store import RunStore
from tests.contract.clients.conftest import NOWHERE, Connect
from tests.servers import Azurite

if TYPE_CHECKING:
    pass

NOW = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)


@pytest.fixture
def runs(table: Table) -> RunStore:
    return RunStore(table)


@pytest.fixture
def documents(table: Table) -> DocumentStore:
    return DocumentStore(table)


def record(question: str = "How high?") -> RunRecord:
    return RunRecord(run_id="r1", thread_id="t1", owner_id="u1", question=question, created_at=NOW)


def state(doc_id: str = "d1", **fields: object) -> DocumentState:
    defaults = {
        "doc_id": doc_id,
        "blob_name": f"{doc_id}.pdf",
        "filename": f"{doc_id}.pdf",
        "updated_at": NOW,
    }
    return DocumentState.model_validate({**defaults, **fields})


async def test_a_record_comes_back_as_it_was(runs: RunStore) -> None:
    long = record("Ünïcode 压力 🔧 'quote' \n" * 320)  # 8,000 characters
    await runs.create(long)
    assert await runs.get("r1") == long


async def test_a_replaced_record_has_its_end_and_its_todo_list(runs: RunStore) -> None:
    await runs.create(record())
    item = TodoItem(position=1, description="The limit is known", acceptance_criteria="It is quoted")
    ended = record().model_copy(update={"status": "completed", "finished_at": NOW, "todo": (item,)})
    await runs.replace(ended)
    assert await runs.get("r1") == ended


async def test_feedback_changes_nothing_else_and_can_be_taken_back(runs: RunStore) -> None:
    ended = record().model_copy(update={"status": "completed", "finished_at": NOW, "error": "none"})
    await runs.create(ended)
    feedback = Feedback(rating=4, reasons=("helpful",), comment="Ünïcode \U0001f527" * 200, given_at=NOW)
    await runs.set_feedback("r1", feedback)
    assert await runs.get("r1") == ended.model_copy(update={"feedback": feedback})
    # Replacing the record stores its rating as well.
    await runs.replace(ended.model_copy(update={"feedback": feedback, "has_log": False}))
    await runs.set_feedback("r1", None)
    assert await runs.get("r1") == ended.model_copy(update={"has_log": False})


async def test_feedback_brings_no_run_back(runs: RunStore) -> None:
    with pytest.raises(NotFoundError):
        await runs.set_feedback("r1", Feedback(rating=4, given_at=NOW))
    assert await runs.get("r1") is None


async def test_a_run_id_is_taken_once(runs: RunStore) -> None:
    await runs.create(record())
    with pytest.raises(ConflictError):
        await runs.create(record())


@pytest.mark.parametrize("run_id", ["a/b", "../runs", "a\\b", "a#b", "a?b", "%00", "a\n"])
async def test_an_id_that_cannot_exist_is_none_too(runs: RunStore, run_id: str) -> None:
    assert await runs.get(run_id) is None


async def test_an_unknown_run_is_none_and_a_purged_one_does_not_come_back(runs: RunStore) -> None:
    assert await runs.get("r1") is None
    with pytest.raises(NotFoundError):
        await runs.replace(record())
    assert await runs.get("r1") is None


async def test_a_document_state_comes_back_with_its_revision(documents: DocumentStore) -> None:
    stored = await documents.create(state(warnings=("Pages 3-5 hold no text.",)))
    assert stored.revision
    assert await documents.get("d1") == stored
    assert await documents.get("d2") is None


async def test_an_access_list_that_outgrows_one_property_is_kept_whole(documents: DocumentStore) -> None:
    rights = Rights(acl=tuple(f"group-{n:04d}-of-the-würzburg-office" for n in range(3000)))
    await documents.create(state(rights=rights))
    document = await documents.get("d1")
    assert document is not None
    assert document.rights == rights


async def test_a_state_is_created_once(documents: DocumentStore) -> None:
    await documents.create(state())
    with pytest.raises(ConflictError):
        await documents.create(state())


async def test_of_two_who_read_the_same_state_the_second_writer_is_refused(
    documents: DocumentStore,
) -> None:
    first = await documents.create(state())
    second = await documents.replace(first.model_copy(update={"status": "parsing"}))
    with pytest.raises(ConflictError):
        await documents.replace(first.model_copy(update={"status": "failed"}))
    with pytest.raises(ConflictError):
        await documents.delete(first)
    assert await documents.get("d1") == second


async def test_a_deleted_state_is_gone_and_cannot_be_replaced(documents: DocumentStore) -> None:
    stored = await documents.create(state())
    await documents.delete(stored)
    await documents.delete(stored)
    with pytest.raises(ConflictError):
        await documents.replace(stored)
    assert await documents.get("d1") is None


async def test_unfinished_documents_are_told_from_ready_ones(documents: DocumentStore) -> None:
    await documents.ensure_table()
    await documents.ensure_table()
    for doc_id, status in (("d1", "ready"), ("d2", "failed"), ("d3", "parsing")):
        await documents.create(state(doc_id, status=status))
    assert {one.doc_id async for one in documents.all()} == {"d1", "d2", "d3"}
    assert {one.doc_id async for one in documents.unfinished()} == {"d2", "d3"}


QUARTERS = [("", "4"), ("4", "8"), ("8", "c"), ("c", None)]


async def test_documents_of_a_range_are_found_by_their_ids(documents: DocumentStore) -> None:
    await documents.ensure_table()
    ids = [f"{digit:x}{'0' * 23}" for digit in range(16)] + ["4" + "f" * 23]
    for doc_id in ids:
        await documents.create(state(doc_id))
    parts = [{one.doc_id async for one in documents.all(low, high)} for low, high in QUARTERS]
    assert [len(part) for part in parts] == [4, 5, 4, 4]
    assert set().union(*parts) == set(ids)
    assert {one.doc_id async for one in documents.all()} == set(ids)


async def test_changes_are_found_by_their_time_to_the_microsecond(documents: DocumentStore) -> None:
    await documents.create(state("d1"))
    await documents.create(state("d2", updated_at=NOW + timedelta(microseconds=1)))
    assert {one.doc_id async for one in documents.changed_since(NOW)} == {"d1", "d2"}
    later = NOW + timedelta(microseconds=1)
    assert {one.doc_id async for one in documents.changed_since(later)} == {"d2"}
    assert [one async for one in documents.changed_since(later + timedelta(microseconds=1))] == []


async def test_without_a_table_there_are_no_documents(documents: DocumentStore) -> None:
    assert [one async for one in documents.all()] == []


@pytest.mark.contract
async def test_tables_out_of_reach_name_the_setting(azurite: Azurite, connect: Connect) -> None:
    nowhere = azurite.connection_string.replace(f"http://127.0.0.1:{azurite.table_port}", NOWHERE)
    store = RunStore(Table(connect(DocumentsStorage=nowhere).tables, "runs"))
    with pytest.raises(DependencyError) as unreachable:
        await store.get("r1")
    assert "DocumentsStorage" in unreachable.value.hints[0]


async def test_the_backlog_and_admission_are_guarded_by_their_etags(documents: DocumentStore) -> None:
    store, work = (
        documents.open_work,
        OpenWork(doc_id="d1", blob_name="a/b.txt", whose="a", urgency="upload", is_long=False, asked_at=NOW),
    )
    first = await store.put(work)
    assert await store.get("d1") == first
    newest = await store.put(work)
    with pytest.raises(ConflictError):
        await store.replace(first)
    with pytest.raises(ConflictError):
        await store.delete("d1", first.revision or "")
    assert [*await store.backlog(is_fresh=True)] == [newest]
    resting = await store.replace(newest.model_copy(update={"due_at": NOW, "rests": 1}))
    await store.delete("d1", resting.revision or "")
    assert (await store.get("d1"), [*await store.backlog(is_fresh=True)]) == (None, [])
    with pytest.raises(ConflictError):
        await store.replace(resting)

    place = Place(doc_id="d1", blob_name="a/b.txt", whose="a", is_long=False, look_at=NOW)
    admission = await store.admission()
    stored_admission = await store.admit(admission.model_copy(update={"places": (place,), "watched_at": NOW}))
    assert await store.admission() == stored_admission
    with pytest.raises(ConflictError):
        await store.admit(admission)
    assert [one async for one in documents.all()] == [], "none of these rows is a document"


async def test_a_question_is_known_to_other_processes(documents: DocumentStore, table: Table) -> None:
    assert not await DocumentStore(table).open_work.is_asked()
    await documents.open_work.note_question()
    assert await DocumentStore(table).open_work.is_asked()
