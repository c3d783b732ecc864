"""Tests for the journal of blob events: every event is raised exactly once."""

from pathlib import Path

import pytest

from local.host.blob_journal import BlobJournal, BlobVersion

PLACE = "Storage/documents"


def version(name: str = "a.pdf", etag: str = "1", function: str = "ingest") -> BlobVersion:
    return BlobVersion(function, PLACE, name, etag)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "host.sqlite3"


def test_version_is_an_event_once_per_function(path: Path) -> None:
    journal = BlobJournal(path)
    assert journal.record([version(), version(function="index")]) == 2
    assert journal.record([version(), version(function="index")]) == 0
    assert journal.record([version(etag="2")]) == 1
    assert [event.version.etag for event in journal.due_events(9, [])] == ["1", "1", "2"]
    journal.close()


def test_open_events_receipts_and_tries_survive_a_restart(path: Path) -> None:
    journal = BlobJournal(path)
    journal.record([version()])
    journal.begin(journal.due_events(1, [])[0])
    journal.close()
    journal = BlobJournal(path)
    (event,) = journal.due_events(9, [])
    assert event.tries == 1
    assert journal.record([version()]) == 0
    journal.finish(event)
    assert journal.due_events(9, []) == []
    journal.close()


def test_events_being_handled_and_postponed_ones_are_not_due(path: Path) -> None:
    journal = BlobJournal(path)
    journal.record([version("a"), version("b"), version("c")])
    first, second, third = journal.due_events(9, [])
    journal.postpone(second, 3600)
    assert journal.due_events(9, [first.event_id]) == [third]
    assert journal.due_events(0, []) == []
    journal.close()


def test_vanished_blob_leaves_a_message_and_its_return_is_new(path: Path) -> None:
    journal = BlobJournal(path)
    journal.record([version()])
    journal.record_deletion(PLACE, "a.pdf", "message")
    assert journal.names(PLACE) == set()
    (deletion,) = journal.pending_deletions()
    assert deletion.message == "message"
    assert journal.record([version()]) == 1
    journal.finish_deletion(deletion)
    assert journal.pending_deletions() == []
    journal.close()
