"""Tests for the cursors of lists of documents, and for the agreement of lists with details."""

import base64
from datetime import UTC, datetime

import pytest

from shared.access.models import UserContext
from shared.documents.listing import (
    ListCriteria,
    ListPosition,
    decode_position,
    encode_position,
    list_documents,
    older_than,
)
from shared.documents.lookup import get_document
from shared.documents.presentation import view_of_state
from shared.ingestion.task import fresh_state
from shared.platform.errors import CallerError
from tests.fakes.services import fake_services

NOON = datetime(2026, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)


@pytest.mark.parametrize(
    "place",
    [ListPosition(doc_id="a1", filename="Übersicht 'neu'.pdf"), ListPosition(doc_id="b2", upload_date=NOON)],
)
def test_what_was_written_is_read_again(place: ListPosition) -> None:
    assert decode_position(encode_position(place)) == place


def test_without_a_cursor_the_list_begins() -> None:
    assert decode_position("") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        "null",
        '{"doc_id": "a"}',
        '{"doc_id": "", "filename": "b"}',
        '{"doc_id": "a", "upload_date": "2026-05-01T12:00:00"}',
        '{"doc_id": "a", "filename": "b", "upload_date": "2026-05-01T12:00:00Z"}',
    ],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(CallerError):
        decode_position(base64.urlsafe_b64encode(text.encode()).decode() or "=")


@pytest.mark.parametrize("cursor", ["x", "äöü", "a b", "%00", "eyJ", "-" * 3000, "/+=="])
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(CallerError):
        decode_position(cursor)


def test_a_condition_is_about_one_instant_and_cannot_be_broken_out_of() -> None:
    assert older_than(NOON, "x' or 1 eq 1") == (
        "upload_date lt 2026-05-01T12:00:00.250000Z or "
        "(upload_date eq 2026-05-01T12:00:00.250000Z and doc_id gt 'x'' or 1 eq 1')"
    )


async def test_a_documents_status_is_the_same_in_list_panel_and_feed() -> None:
    services = fake_services()
    state = fresh_state("scan.pdf")
    rights = state.wanted_rights.model_copy(update={"acl": ("anna",)})
    indexed = {
        "status": "ready",
        "content_hash": "hash",
        "upload_date": NOON,
        "rights": rights,
        "wanted_rights": rights,
        "page_count": 2,
        "unreadable_pages": 2,
        "has_text": False,
        "warnings": ("Pages 1-2 contain no text.",),
    }
    state = await services.documents.create(state.model_copy(update=indexed))
    row = {
        "doc_id": state.doc_id,
        "filename": "scan.pdf",
        "status": "ready",
        "upload_date": NOON.isoformat(),
        "page_count": 2,
        "access_control_list": ["anna"],
    }
    await services.documents_index.upload([row])
    anna = UserContext(user_id="anna")
    (listed,) = (await list_documents(anna, services, ListCriteria({}))).documents
    detail = await get_document(state.doc_id, anna, services)
    for view in (listed, detail, view_of_state(state)):
        assert (view.unreadable_pages, view.has_text) == (2, False)
        assert view.warnings == ("Pages 1-2 contain no text.",)
