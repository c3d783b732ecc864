"""Tests for reusing the results of a document with the same content, and for detecting renamed documents."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.documents.state import DocumentState, PhaseTime, Rights
from shared.ingestion.copies import RENAME_WINDOW, covers, is_new_name, may_reuse

MOMENT = datetime(2026, 1, 2, tzinfo=UTC)


def document(
    name: str, acl: str = "anna,board", owner: str | None = "anna", **changes: object
) -> DocumentState:
    rights = Rights(acl=tuple(acl.split(",")) if acl else (), owner_id=owner, project_id="p1")
    state = DocumentState(
        doc_id=name,
        blob_name=name,
        filename=name,
        content_hash="bytes",
        pipeline="rules",
        version=1,
        rights=rights,
        wanted_rights=rights,
        phases=(PhaseTime(status="queued", at=MOMENT),),
        updated_at=MOMENT,
    )
    return state.model_copy(update=changes)


@pytest.mark.parametrize(
    ("wider", "narrower", "covered"),
    [
        ("anna,board", "anna,board", True),
        ("anna,board", "anna", True),
        ("*", "anna", True),
        ("anna", "anna,board", False),
        ("anna", "*", False),
        ("anna", "", False),
        ("", "", False),
        ("", "anna", False),
    ],
)
def test_a_copy_profits_only_from_what_each_of_its_readers_may_read(
    wider: str, narrower: str, covered: bool
) -> None:
    assert covers(document("a", wider).rights, document("b", narrower).rights) is covered
    assert may_reuse(document("b", narrower), document("a", wider), "bytes", "rules") is covered


@pytest.mark.parametrize(
    "changes",
    [
        {"content_hash": "others"},
        {"pipeline": "other rules"},
        {"doc_id": "copy"},
        {"rights": Rights(acl=("anna",), project_id="p1")},
        {"wanted_rights": Rights(acl=("anna",), project_id="p1")},
        {"rights": Rights(acl=("anna", "board"), project_id="p2")},
        {"wanted_rights": Rights(acl=("anna", "board"), project_id=None)},
    ],
    ids=["bytes", "rules", "itself", "closed", "being closed", "other project", "leaving the project"],
)
def test_what_differs_is_not_reused(changes: dict[str, object]) -> None:
    copy, original = document("copy"), document("original")
    assert may_reuse(copy, original, "bytes", "rules")
    assert not may_reuse(copy, original.model_copy(update=changes), "bytes", "rules")


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"corrections": {"title": "Another"}},
        {"content_hash": "others"},
        {"phases": (PhaseTime(status="queued", at=MOMENT - RENAME_WINDOW - timedelta(seconds=1)),)},
        {"phases": ()},
        {"wanted_rights": Rights(acl=("anna", "board"), owner_id="ben", project_id="p1")},
        {"wanted_rights": Rights(acl=("anna", "board", "ben"), owner_id="anna", project_id="p1")},
    ],
    ids=["not new", "corrected", "other bytes", "long ago", "never begun", "another owner", "wider"],
)
def test_corrections_follow_a_new_name_of_the_same_owner_and_nothing_else(changes: dict[str, object]) -> None:
    old, new = document("old"), document("new")
    assert is_new_name(old, new, MOMENT)
    assert not is_new_name(old, new.model_copy(update=changes), MOMENT)


def test_documents_of_nobody_are_nobodys_new_name() -> None:
    assert not is_new_name(document("old", owner=None), document("new", owner=None), MOMENT)
