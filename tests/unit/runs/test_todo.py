"""Tests for the todo list, which advances with the run in the order of its dependencies."""

from shared.runs.plan import TodoItem, close_todo, complete_lookups, count_attempt, start_ready


def item(position: int, *dependencies: int) -> TodoItem:
    return TodoItem(
        position=position, description="Known", acceptance_criteria="Cited", dependencies=dependencies
    )


COMPARISON = (item(1), item(2), item(3, 1, 2))


def statuses(todo: tuple[TodoItem, ...]) -> list[tuple[str, int]]:
    return [(one.status, one.attempts) for one in todo]


def test_what_depends_on_nothing_is_begun_first() -> None:
    assert statuses(start_ready(COMPARISON)) == [("in_progress", 1), ("in_progress", 1), ("pending", 0)]


def test_evidence_finishes_what_others_wait_for_and_begins_these() -> None:
    assert statuses(complete_lookups(start_ready(COMPARISON))) == [
        ("done", 1),
        ("done", 1),
        ("in_progress", 1),
    ]


def test_an_item_that_waits_for_two_waits_for_both() -> None:
    half_done = (item(1).model_copy(update={"status": "failed"}), *COMPARISON[1:])
    assert statuses(complete_lookups(start_ready(half_done)))[2] == ("pending", 0)


def test_a_single_item_is_done_with_the_answer_not_with_the_evidence() -> None:
    assert statuses(complete_lookups(start_ready((item(1),)))) == [("in_progress", 1)]
    assert statuses(close_todo(start_ready((item(1),)), succeeded=True)) == [("done", 1)]


def test_another_attempt_counts_for_what_is_in_progress() -> None:
    assert statuses(count_attempt(complete_lookups(start_ready(COMPARISON)))) == [
        ("done", 1),
        ("done", 1),
        ("in_progress", 2),
    ]


def test_without_an_answer_nothing_is_done() -> None:
    assert {status for status, _ in statuses(close_todo(COMPARISON, succeeded=False))} == {"failed"}
