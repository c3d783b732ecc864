"""The todo list advances with the run, in the order of its dependencies."""

from shared.runs.plan import TodoItem, closed, evidence_found, started, tried_again


def item(position: int, *dependencies: int) -> TodoItem:
    return TodoItem(
        position=position, description="Known", acceptance_criteria="Cited", dependencies=dependencies
    )


COMPARISON = (item(1), item(2), item(3, 1, 2))


def statuses(todo: tuple[TodoItem, ...]) -> list[tuple[str, int]]:
    return [(one.status, one.attempts) for one in todo]


def test_what_depends_on_nothing_is_begun_first() -> None:
    assert statuses(started(COMPARISON)) == [("in_progress", 1), ("in_progress", 1), ("pending", 0)]


def test_evidence_finishes_what_others_wait_for_and_begins_these() -> None:
    assert statuses(evidence_found(started(COMPARISON))) == [("done", 1), ("done", 1), ("in_progress", 1)]


def test_an_item_that_waits_for_two_waits_for_both() -> None:
    half_done = (item(1).model_copy(update={"status": "failed"}), *COMPARISON[1:])
    assert statuses(evidence_found(started(half_done)))[2] == ("pending", 0)


def test_a_single_item_is_done_with_the_answer_not_with_the_evidence() -> None:
    assert statuses(evidence_found(started((item(1),)))) == [("in_progress", 1)]
    assert statuses(closed(started((item(1),)), succeeded=True)) == [("done", 1)]


def test_another_attempt_counts_for_what_is_in_progress() -> None:
    assert statuses(tried_again(evidence_found(started(COMPARISON)))) == [
        ("done", 1),
        ("done", 1),
        ("in_progress", 2),
    ]


def test_without_an_answer_nothing_is_done() -> None:
    assert {status for status, _ in statuses(closed(COMPARISON, succeeded=False))} == {"failed"}
