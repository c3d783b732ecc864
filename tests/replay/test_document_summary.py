"""`document_summary` and its children on a virtual clock: every run ends, whatever the children and the model
do.
"""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from orchestrations.run_agent import document_summary, read_document
from shared.answering.script import MAX_PATIENT_TRIES
from shared.answering.steps import Observation, RunClosed, StepFailed, StepResult
from shared.answering.subagent_models import SubagentPlace
from shared.answering.summary_models import (
    DocumentEnded,
    DocumentOpened,
    DocumentsChosen,
    SummaryMerged,
    SummaryStale,
    WindowsRead,
)
from shared.answering.summary_script import MAX_MERGES, MAX_RANGES, PAUSES_S
from tests.replay.harness import Reply, Run, Script, simulate
from tests.replay.history import START

CHILDREN_UNTIL_S = 600
BUSY = StepFailed(error_type="RateLimitError", message="Busy.", retryable=True)
PLACE = {"run_id": "instance-1", "path": "s001c4"}

Answer = Observation | Reply | Callable[[Any], Observation | Reply]


def answering(answers: dict[str, Answer]) -> Callable[[Any], object]:
    """Return an activity with a reply for each kind of action."""

    def perform_step(payload: Any) -> object:
        answer = answers[payload["action"]["kind"]]
        reply = answer(payload["action"]) if callable(answer) else answer
        return reply if isinstance(reply, Reply) else encode_result(reply)

    return perform_step


def encode_result(observed: Observation) -> dict[str, Any]:
    return StepResult(observation=observed).model_dump(mode="json")


def done(number: int) -> dict[str, Any]:
    return {"child_id": f"instance-1:s001c{number}", "status": "done"}


def summarise(*children: object, at_once: int = 20, **changes: Answer) -> Run:
    """Run the parent. To record a history, call `record` on the result with the name "document_summary"."""
    chosen = DocumentsChosen(
        children=tuple(
            SubagentPlace(run_id="instance-1", path=f"s001c{number}") for number in range(len(children))
        ),
        until=START + timedelta(seconds=CHILDREN_UNTIL_S),
        at_once=at_once,
    )
    answers: dict[str, Answer] = {
        "open_summary": chosen,
        "merge_summary": SummaryMerged(),
        "commit_summary": RunClosed(),
        "report_failure": RunClosed(),
        **changes,
    }
    script = Script(
        activities={
            "perform_step": answering(answers),
            "terminate_instances": lambda payload: Reply(
                {"terminated": 1}, terminates=payload["instance_ids"]
            ),
        },
        children={"read_document": lambda payload: children[int(payload["path"].partition("c")[2])]},
    )
    return simulate(document_summary, {"run_id": "instance-1"}, script)


def document(**changes: Answer) -> Run:
    """Run a child. To record a history, call `record` on the result with the name "read_document"."""
    answers: dict[str, Answer] = {
        "open_document": DocumentOpened(window_count=3),
        "read_windows": WindowsRead(done=1),
        "reduce_document": DocumentEnded(status="done"),
        **changes,
    }
    return simulate(read_document, PLACE, Script(activities={"perform_step": answering(answers)}))


def names(run: Run) -> list[str]:
    """Return the kinds of steps, and the names of other activities and children, in order."""
    return [payload["action"]["kind"] if name == "perform_step" else name for name, payload in run.calls]


def ranges(run: Run) -> list[tuple[int, int]]:
    actions = [payload["action"] for _, payload in run.calls]
    return [(one["first"], one["end"]) for one in actions if one["kind"] == "read_windows"]


def test_every_document_has_a_child_and_the_parent_closes() -> None:
    run = summarise(done(0), done(1), done(2))
    steps = ["merge_summary", "commit_summary"]
    assert names(run) == ["open_summary", *["read_document"] * 3, *steps]
    assert run.output == {"outcome": "completed"}
    assert run.custom_status["phase"] == "merge"
    assert run.left_open == []


def test_a_child_that_fails_and_one_that_is_late_do_not_keep_the_result() -> None:
    run = summarise(done(0), Reply(failure="a defect"), Reply(done(2), after_s=9999))
    assert run.output == {"outcome": "completed"}
    assert names(run)[-3:] == ["terminate_instances", "merge_summary", "commit_summary"]
    assert run.finished_after_s == CHILDREN_UNTIL_S


def test_no_more_documents_are_read_at_once_than_allowed() -> None:
    run = summarise(*(Reply(done(number), after_s=10) for number in range(5)), at_once=2)
    assert run.finished_after_s == 30


def test_the_end_is_stored_again_until_it_is() -> None:
    tries = Counter[str]()

    def closing(action: Any) -> Observation:
        tries["made"] += 1
        return BUSY if tries["made"] < 3 else RunClosed()

    run = summarise(done(0), commit_summary=closing)
    assert names(run).count("commit_summary") == 3
    assert run.returned_after_s == 2 + 4
    assert run.output == {"outcome": "completed"}


def test_an_end_that_cannot_be_stored_is_reported_as_a_failure() -> None:
    run = summarise(done(0), commit_summary=BUSY)
    assert names(run).count("commit_summary") == MAX_PATIENT_TRIES
    assert names(run)[-1] == "report_failure"
    assert run.output == {"outcome": "failed"}


def test_a_summary_whose_document_was_closed_meanwhile_is_merged_again() -> None:
    commits = Counter[str]()

    def commit(action: Any) -> Observation:
        commits["made"] += 1
        return SummaryStale() if commits["made"] == 1 else RunClosed()

    run = summarise(done(0), commit_summary=commit)
    assert names(run)[2:] == ["merge_summary", "commit_summary"] * 2
    merged, committed = [payload["action"] for _, payload in run.calls[-2:]]
    assert committed["merge_step"] == merged["step"]
    assert run.output == {"outcome": "completed"}


def test_a_summary_that_is_stale_again_and_again_fails() -> None:
    run = summarise(done(0), commit_summary=SummaryStale())
    assert names(run).count("merge_summary") == MAX_MERGES
    assert names(run)[-1] == "report_failure"
    assert run.output == {"outcome": "failed"}


def test_a_document_is_opened_read_and_reduced() -> None:
    run = document()
    assert names(run) == ["open_document", *["read_windows"] * 3, "reduce_document"]
    assert ranges(run) == [(0, 1), (1, 2), (2, 3)]
    assert {(payload["run_id"], payload["path"]) for _, payload in run.calls} == {("instance-1", "s001c4")}
    assert (run.output["child_id"], run.output["status"]) == ("instance-1:s001c4", "done")


def test_a_long_document_is_read_in_ranges_that_cover_it_and_stay_few() -> None:
    run = document(open_document=DocumentOpened(window_count=900))
    assert len(ranges(run)) <= MAX_RANGES
    assert [first for first, _ in ranges(run)] == [0, *(end for _, end in ranges(run)[:-1])]
    assert ranges(run)[-1][1] == 900
    assert len(run.recording.episodes) < 100


@pytest.mark.parametrize("opened", [DocumentEnded(status="not_found"), RunClosed(), BUSY])
def test_what_cannot_be_opened_is_not_read(opened: Answer) -> None:
    run = document(open_document=opened)
    assert names(run) == ["open_document"]
    assert run.output["status"] == "failed"


def test_windows_that_failed_are_tried_again_after_pauses_and_no_longer_than_that() -> None:
    run = document(read_windows=WindowsRead(done=0, failed=1, again=1))
    assert names(run).count("read_windows") == 3 * (1 + len(PAUSES_S))
    assert run.returned_after_s == sum(PAUSES_S)
    assert names(run)[-1] == "reduce_document"


def test_windows_that_cannot_be_read_are_not_tried_again() -> None:
    run = document(read_windows=WindowsRead(done=0, failed=1))
    assert names(run).count("read_windows") == 3


def test_reading_steps_that_were_lost_side_by_side_are_read_again() -> None:
    lost = Counter[int]()

    def read(action: Any) -> WindowsRead | Reply:
        lost[action["first"]] += 1
        return Reply(failure="the worker died") if lost[action["first"]] < 3 else WindowsRead(done=1)

    run = document(read_windows=read)
    assert lost == {0: 3, 1: 3, 2: 3}
    assert run.output["status"] == "done"
    assert run.left_open == []


@pytest.mark.parametrize("ended", [RunClosed(), DocumentEnded(status="not_found")])
def test_a_cancelled_summary_or_a_closed_document_stops_reading(ended: Answer) -> None:
    run = document(open_document=DocumentOpened(window_count=10), read_windows=ended)
    assert names(run) == ["open_document", "read_windows", "read_windows"]
    assert run.output["status"] == "failed"
