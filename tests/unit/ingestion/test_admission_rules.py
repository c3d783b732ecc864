"""Tests for choosing the document that gets the next free slot."""

from datetime import UTC, datetime, timedelta

from shared.documents.open_work import OpenWork, Place, Urgency
from shared.ingestion.admission_rules import PLACES, PLACES_WHILE_ASKED, assign_places

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def work(
    whose: str,
    number: int = 0,
    urgency: Urgency = "background",
    *,
    is_long: bool = False,
    due_at: datetime | None = None,
) -> OpenWork:
    name = f"{whose}/{number}"
    return OpenWork(
        doc_id=name,
        blob_name=name,
        whose=whose,
        urgency=urgency,
        is_long=is_long,
        asked_at=NOW + timedelta(seconds=number),
        due_at=due_at,
    )


def many(whose: str, count: int = 20, *, is_long: bool = False) -> list[OpenWork]:
    return [work(whose, number, is_long=is_long) for number in range(count)]


def assign(
    backlog: list[OpenWork], places_in_use: list[Place] | None = None, *, is_asked: bool = False
) -> list[Place]:
    return assign_places(backlog, places_in_use or [], is_asked=is_asked, now=NOW)


def ids(places: list[Place]) -> list[str]:
    return [place.doc_id for place in places]


def test_short_texts_of_a_lone_sender_take_all_places_but_the_kept_one_oldest_first() -> None:
    assert ids(assign(many("anna")[::-1])) == [f"anna/{number}" for number in range(PLACES - 1)]
    assert len(assign(many("anna"), is_asked=True)) == PLACES_WHILE_ASKED - 1


def test_long_files_of_one_person_leave_half_of_the_places() -> None:
    places_in_use = assign(many("anna", is_long=True))
    assert len(places_in_use) == PLACES // 2
    assert len(assign(many("anna", is_long=True), is_asked=True)) == PLACES_WHILE_ASKED // 2
    more = assign([*many("anna", is_long=True), *many("ben", is_long=True)], places_in_use)
    assert {place.whose for place in more} == {"ben"}


def test_the_person_with_the_fewest_documents_comes_first() -> None:
    places_in_use = assign(many("anna"))[:3]
    backlog = [*many("anna"), work("ben", 90), work("ben", 91), work("eva", 92)]
    assert ids(assign(backlog, places_in_use))[:3] == ["ben/90", "eva/92", "ben/91"]


def test_a_change_comes_before_older_files_of_the_same_person() -> None:
    backlog = [*many("anna"), work("anna", 50, "upload"), work("anna", 60, "change")]
    assert ids(assign(backlog))[:3] == ["anna/60", "anna/50", "anna/0"]


def test_one_place_is_kept_for_uploads_and_changes_of_people_who_have_none() -> None:
    places_in_use = assign(many("anna"))
    assert assign([work("anna", 50, "upload"), work("ben", 1)], places_in_use) == []
    (place,) = assign([work("ben", 1, "upload")], places_in_use)
    assert place.is_kept
    assert assign([work("eva", 1, "change")], [*places_in_use, place]) == []


def test_the_kept_place_is_free_also_when_questions_make_all_others_too_many() -> None:
    places_in_use = assign(many("anna"))
    (place,) = assign([*many("anna"), work("ben", 1, "upload")], places_in_use, is_asked=True)
    assert (place.whose, place.is_kept) == ("ben", True)


def test_a_document_gets_one_place_and_none_before_its_time() -> None:
    places_in_use = assign(many("anna", 1))
    assert assign(many("anna", 1), places_in_use) == []
    assert assign([work("ben", due_at=NOW + timedelta(seconds=1))]) == []
    assert len(assign([work("ben", due_at=NOW)])) == 1
