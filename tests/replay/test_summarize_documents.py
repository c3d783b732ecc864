"""`summarize_documents` and its child on a virtual clock: an end whatever the children and the model do."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from orchestrations.summarize_documents import (
    CLOSE_PAUSES_S,
    MAX_RANGES,
    PAUSES_S,
    summarize_document,
    summarize_documents,
)
from shared.summaries.models import (
    DocumentEnded,
    DocumentOpened,
    SummaryClosed,
    SummaryReply,
    SummaryReplyEnvelope,
    SummaryStepFailed,
    WindowsRead,
)
from tests.replay.harness import Reply, Run, Script, simulate
from tests.replay.history import START

CHILDREN_UNTIL_S, MAP_UNTIL_S = 600, 500
DONE = {"status": "done"}
BUSY = SummaryStepFailed(error_type="RateLimitError", retryable=True)

Answer = SummaryReply | Reply | Callable[[Any], SummaryReply | Reply]


def answering(answer: Answer) -> Callable[[Any], object]:
    def activity(given: Any) -> object:
        reply = answer(given) if callable(answer) else answer
        if isinstance(reply, Reply):
            return reply
        return SummaryReplyEnvelope(reply=reply).model_dump(mode="json")

    return activity


def instant(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat()


def summarise(*children: object, at_once: int = 20, closing: Answer | None = None) -> Run:
    """Run the parent; `summarise(...).record("summarize_documents", …)` makes a history."""
    start = {
        "summary_id": "instance-1",
        "document_count": len(children),
        "at_once": at_once,
        "map_until": instant(MAP_UNTIL_S),
        "children_until": instant(CHILDREN_UNTIL_S),
    }
    script = Script(
        activities={
            "reduce_summary": answering(closing or SummaryClosed(status="completed")),
            "terminate_instances": lambda given: Reply({"terminated": 1}, terminates=given["instance_ids"]),
        },
        children={"summarize_document": lambda given: children[given["index"]]},
    )
    return simulate(summarize_documents, start, script)


def document(**changes: Answer) -> Run:
    """Run a child."""
    answers: dict[str, Answer] = {
        "open_summary_document": DocumentOpened(window_count=3),
        "read_summary_windows": WindowsRead(done=1),
        "reduce_summary_document": DocumentEnded(status="done"),
        **changes,
    }
    script = Script(activities={name: answering(answer) for name, answer in answers.items()})
    start = {"summary_id": "instance-1", "index": 4, "map_until": instant(MAP_UNTIL_S)}
    return simulate(summarize_document, start, script)


def names(run: Run) -> list[str]:
    return [name for name, _ in run.calls]


def test_every_document_has_a_child_and_the_parent_closes() -> None:
    run = summarise(DONE, DONE, DONE)
    assert names(run) == ["summarize_document"] * 3 + ["reduce_summary"]
    assert run.output == {"status": "completed", "children": ["done"] * 3}
    assert run.custom_status == {"phase": "merge", "ended": 3, "of": 3}
    assert run.left_open == []


def test_a_child_that_fails_and_one_that_is_late_do_not_keep_the_result() -> None:
    run = summarise(DONE, Reply(failure="a defect"), Reply(DONE, after_s=9999))
    assert run.output == {"status": "completed", "children": ["done", "failed", "late"]}
    assert names(run)[-2:] == ["terminate_instances", "reduce_summary"]
    assert run.finished_after_s == CHILDREN_UNTIL_S


def test_no_more_documents_are_read_at_once_than_allowed() -> None:
    run = summarise(*(Reply(DONE, after_s=10) for _ in range(5)), at_once=2)
    assert run.finished_after_s == 30


def test_the_end_is_stored_again_until_it_is() -> None:
    tries = Counter[str]()

    def closing(given: Any) -> SummaryReply:
        tries["made"] += 1
        return BUSY if tries["made"] < 3 else SummaryClosed(status="completed")

    run = summarise(DONE, closing=closing)
    assert names(run).count("reduce_summary") == 3
    assert run.returned_after_s == sum(CLOSE_PAUSES_S[:2])
    assert run.output["status"] == "completed"


def test_an_end_that_cannot_be_stored_ends_the_parent_all_the_same() -> None:
    run = summarise(DONE, closing=BUSY)
    assert names(run).count("reduce_summary") == 1 + len(CLOSE_PAUSES_S)
    assert run.output["status"] == "failed"


def test_a_document_is_opened_read_and_reduced() -> None:
    run = document()
    assert names(run) == [
        "open_summary_document",
        *["read_summary_windows"] * 3,
        "reduce_summary_document",
    ]
    ranges = [(given["first"], given["end"]) for name, given in run.calls if "read" in name]
    assert ranges == [(0, 1), (1, 2), (2, 3)]
    assert {given["index"] for _, given in run.calls} == {4}
    assert run.output == {"status": "done"}


def test_a_long_document_is_read_in_ranges_that_cover_it_and_stay_few() -> None:
    run = document(open_summary_document=DocumentOpened(window_count=900))
    ranges = [(given["first"], given["end"]) for name, given in run.calls if "read" in name]
    assert len(ranges) <= MAX_RANGES
    assert [first for first, _ in ranges] == [0, *(end for _, end in ranges[:-1])]
    assert ranges[-1][1] == 900
    assert len(run.recording.episodes) < 100


@pytest.mark.parametrize(
    ("opened", "status"),
    [
        (DocumentEnded(status="not_found"), "not_found"),
        (SummaryClosed(status="cancelled"), "cancelled"),
        (BUSY, "failed"),
    ],
)
def test_what_cannot_be_opened_is_not_read(opened: Answer, status: str) -> None:
    run = document(open_summary_document=opened)
    assert names(run) == ["open_summary_document"]
    assert run.output == {"status": status}


def test_windows_that_failed_are_tried_again_after_pauses_and_no_longer_than_that() -> None:
    run = document(read_summary_windows=WindowsRead(done=0, failed=1, again=1))
    assert names(run).count("read_summary_windows") == 3 * (1 + len(PAUSES_S))
    assert run.returned_after_s == sum(PAUSES_S)
    assert names(run)[-1] == "reduce_summary_document"


def test_windows_that_cannot_be_read_are_not_tried_again() -> None:
    run = document(read_summary_windows=WindowsRead(done=0, failed=1))
    assert names(run).count("read_summary_windows") == 3


def test_nothing_is_tried_again_when_the_time_for_reading_is_over() -> None:
    slow = Reply(SummaryReplyEnvelope(reply=BUSY).model_dump(mode="json"), after_s=MAP_UNTIL_S)
    run = document(read_summary_windows=slow)
    assert names(run).count("read_summary_windows") == 3
    assert names(run)[-1] == "reduce_summary_document"


def test_reading_steps_that_were_lost_side_by_side_are_read_again() -> None:
    lost = Counter[int]()

    def read(given: Any) -> WindowsRead | Reply:
        lost[given["first"]] += 1
        return Reply(failure="the worker died") if lost[given["first"]] < 3 else WindowsRead(done=1)

    run = document(read_summary_windows=read)
    assert lost == {0: 3, 1: 3, 2: 3}
    assert run.output == {"status": "done"}
    assert run.left_open == []


def test_a_cancelled_summary_stops_reading() -> None:
    run = document(
        open_summary_document=DocumentOpened(window_count=10),
        read_summary_windows=SummaryClosed(status="cancelled"),
        reduce_summary_document=SummaryClosed(status="cancelled"),
    )
    assert names(run).count("read_summary_windows") == 2
    assert run.output == {"status": "cancelled"}
