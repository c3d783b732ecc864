"""Tests for the contents of list entries and details of documents."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.access.models import UserContext
from shared.documents.presentation import ACCESS_LAGS, detail_of, view_of_state
from shared.documents.state import DocumentState, PhaseTime, Rights

NOON = datetime(2026, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)
ACL = ("anna", "department:sales", "group-a", "org:acme")
STATE = DocumentState(
    doc_id="d1",
    blob_name="uploads/0123456789abcdef/2024/a.pdf",
    filename="a.pdf",
    wanted_rights=Rights(acl=ACL, owner_id="anna"),
    content_hash="hash",
    updated_at=NOON,
)
ANNA = UserContext(user_id="anna", groups=("group-a",))
BEN = UserContext(user_id="ben", groups=("group-a", "group-b"), org_id="acme")
OLGA = UserContext(user_id="olga", roles=("admin",))


def test_no_phase_takes_less_than_no_time() -> None:
    behind = NOON - timedelta(milliseconds=11)  # clock skew of the machine that serves the next page
    phases = (PhaseTime(status="queued", at=NOON), PhaseTime(status="parsing", at=behind))
    detail = detail_of(view_of_state(STATE), STATE.model_copy(update={"phases": phases}), ANNA)
    assert detail.history[0].seconds == 0


def test_a_final_phase_has_no_duration() -> None:
    phases = (PhaseTime(status="parsing", at=NOON), PhaseTime(status="ready", at=NOON + timedelta(seconds=2)))
    detail = detail_of(view_of_state(STATE), STATE.model_copy(update={"phases": phases}), ANNA)
    assert [phase.seconds for phase in detail.history] == [2, None]


@pytest.mark.parametrize(
    ("user", "ways"), [(ANNA, ("owner", "group")), (BEN, ("group", "organisation")), (OLGA, ())]
)
def test_readers_learn_in_which_way_they_may_read(user: UserContext, ways: tuple[str, ...]) -> None:
    assert detail_of(view_of_state(STATE), STATE, user).access_via == ways


@pytest.mark.parametrize("user", [ANNA, OLGA])
def test_owners_and_administrators_see_who_has_access(user: UserContext) -> None:
    detail = detail_of(view_of_state(STATE), STATE, user)
    assert (detail.acl, detail.owner_id, detail.folder, detail.may_change) == (ACL, "anna", "2024", True)


def test_other_readers_do_not_see_who_has_access() -> None:
    detail = detail_of(view_of_state(STATE), STATE, BEN)
    assert (detail.acl, detail.owner_id, detail.folder, detail.may_change) == (None, None, None, False)
    assert detail.content_hash is None


def test_a_list_that_is_not_applied_yet_is_mentioned() -> None:
    outdated = STATE.model_copy(update={"rows_outdated": True, "warnings": ("Page 2 contains no text.",)})
    assert detail_of(view_of_state(outdated), outdated, ANNA).warnings == (
        "Page 2 contains no text.",
        ACCESS_LAGS,
    )


def test_a_document_is_processed_until_its_newest_wish_is_settled() -> None:
    wishes = [(1, 0, True), (2, 1, True), (2, 2, False)]
    for wish, settled, is_processing in wishes:
        state = STATE.model_copy(update={"status": "ready", "wish": wish, "settled": settled})
        assert detail_of(view_of_state(state), state, ANNA).is_processing == is_processing
