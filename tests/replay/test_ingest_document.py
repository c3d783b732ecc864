"""`ingest_document` on a virtual clock: the actions are the same on every replay, and every run ends,
whatever the steps return.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from orchestrations.ingest_document import (
    MAX_CONCURRENT_STEPS,
    MAX_RANGES,
    MIN_FIGURES,
    MIN_RANGE,
    PAUSES_S,
    RESTS_S,
    ingest_document,
)
from shared.ingestion.models import (
    Accepted,
    Closed,
    Done,
    Fenced,
    IngestFailure,
    IngestReply,
    IngestReplyEnvelope,
    IngestResult,
    Parsed,
    Planned,
    SmallDone,
)
from tests.replay.harness import Reply, Run, Script, simulate

CHANGED = Accepted(outcome="changed", content_changed=True)
SMALL = Accepted(outcome="changed", content_changed=True, small=True)
BUSY = IngestFailure(reason="Too many requests.", retryable=True, retry_after_s=5)
WAITS = IngestFailure(reason="Other files are being read.", retryable=True, waits=True)
BROKEN = IngestFailure(reason="The PDF is damaged.", hint="Export it again.")
GOOD: Mapping[str, IngestReply] = {
    "accept_document": CHANGED,
    "ingest_small_document": SmallDone(result=IngestResult(outcome="ready", new_count=3), again=False),
    "parse_document": Parsed(version_key="abc"),
    "describe_document": Done(),
    "plan_document": Planned(new_count=3, moved_count=0, kept_count=0, gone_count=0),
    "caption_figures": Done(),
    "write_blocks": Done(),
    "finish_document": Done(),
    "apply_rights": Done(),
    "remove_document": Closed(again=False),
    "close_document": Closed(again=False),
    "rest_document": Closed(again=False),
}
RESTED = CHANGED.model_copy(update={"rests": len(RESTS_S)})
Answer = IngestReply | Reply | Callable[[Any], IngestReply]


def answering(answer: Answer) -> Callable[[Any], object]:
    def activity(payload: Any) -> object:
        if isinstance(answer, Reply):
            return answer
        reply = answer(payload) if callable(answer) else answer
        return IngestReplyEnvelope(reply=reply).model_dump(mode="json")

    return activity


def ingest(**changes: Answer) -> Run:
    answers: dict[str, Answer] = {**GOOD, **changes}
    script = Script(activities={name: answering(answer) for name, answer in answers.items()})
    return simulate(ingest_document, {"blob_name": "a.pdf"}, script)


def names(run: Run) -> list[str]:
    return [name for name, _ in run.calls]


def failing(times: int, failure: IngestFailure, then: IngestReply) -> Callable[[Any], IngestReply]:
    """Return a reply function for an activity that fails the given number of times and then succeeds. Replays
    don't call it.
    """
    calls = Counter[str]()

    def answer(payload: Any) -> IngestReply:
        calls["made"] += 1
        return failure if calls["made"] <= times else then

    return answer


def test_a_new_document_goes_through_every_step_once() -> None:
    run = ingest()
    assert names(run) == [
        "accept_document",
        "parse_document",
        "describe_document",
        "plan_document",
        "write_blocks",
        "finish_document",
        "close_document",
    ]
    assert (run.output["outcome"], run.output["new_count"]) == ("ready", 3)
    assert run.left_open == []


@pytest.mark.parametrize(
    ("accepted", "steps", "outcome"),
    [
        (Accepted(outcome="nothing"), [], "nothing"),
        (Accepted(outcome="current"), ["close_document"], "current"),
        (Accepted(outcome="gone"), ["remove_document"], "removed"),
        (
            Accepted(outcome="changed", rights_changed=True),
            ["apply_rights", "close_document"],
            "rights",
        ),
    ],
)
def test_only_what_is_needed_is_done(accepted: Accepted, steps: list[str], outcome: str) -> None:
    run = ingest(accept_document=accepted)
    assert names(run) == ["accept_document", *steps]
    assert run.output["outcome"] == outcome


def test_a_small_document_takes_one_step_more() -> None:
    run = ingest(accept_document=SMALL)
    assert names(run) == ["accept_document", "ingest_small_document"]
    assert (run.output["outcome"], run.output["new_count"]) == ("ready", 3)


def test_a_small_document_that_was_ingested_at_once_needs_no_other_step() -> None:
    done = SmallDone(result=IngestResult(outcome="ready", new_count=3), again=False)
    run = ingest(accept_document=SMALL.model_copy(update={"done": done}))
    assert names(run) == ["accept_document"]
    assert (run.output["outcome"], run.output["new_count"]) == ("ready", 3)


def test_an_event_that_came_meanwhile_is_followed_by_a_small_document_too() -> None:
    done = SmallDone(result=IngestResult(outcome="ready"), again=True)
    for accepted in (SMALL, SMALL.model_copy(update={"done": done})):
        run = ingest(accept_document=accepted, ingest_small_document=done)
        assert run.continued_with == {"blob_name": "a.pdf"}


def test_a_small_document_that_fails_is_closed_with_its_reason() -> None:
    run = ingest(accept_document=SMALL, ingest_small_document=BROKEN)
    assert names(run) == ["accept_document", "ingest_small_document", "close_document"]
    assert run.output["outcome"] == "failed"


def test_narrower_rights_of_a_small_document_hold_first_and_are_told() -> None:
    both = SMALL.model_copy(update={"rights_changed": True})
    done = SmallDone(result=IngestResult(outcome="current"), again=False)
    run = ingest(accept_document=both, ingest_small_document=done)
    assert names(run) == ["accept_document", "apply_rights", "ingest_small_document"]
    assert run.output["outcome"] == "rights"


def test_narrower_rights_hold_before_the_content_is_read() -> None:
    both = Accepted(outcome="changed", rights_changed=True, content_changed=True)
    run = ingest(accept_document=both)
    assert names(run).index("apply_rights") < names(run).index("parse_document")


def test_the_same_bytes_end_after_hashing() -> None:
    run = ingest(parse_document=Parsed(version_key="abc", same_bytes=True))
    assert names(run) == ["accept_document", "parse_document", "close_document"]
    assert run.output["outcome"] == "current"


def test_a_large_document_is_written_in_ranges_that_cover_it_and_stay_few() -> None:
    count = 30_000
    run = ingest(plan_document=Planned(new_count=count, moved_count=0, kept_count=0, gone_count=0))
    ranges = [(payload["first"], payload["end"]) for name, payload in run.calls if name == "write_blocks"]
    assert len(ranges) == MAX_RANGES
    assert [first for first, _ in ranges] == [0, *(end for _, end in ranges[:-1])]
    assert ranges[-1][1] == count
    assert len(run.recording.episodes) < 100
    assert MAX_CONCURRENT_STEPS < MAX_RANGES < count / MIN_RANGE


def test_new_figures_are_captioned_before_anything_is_written() -> None:
    count = 2 * MIN_FIGURES + 1
    planned = Planned(new_count=count, new_figure_count=count, moved_count=0, kept_count=0, gone_count=0)
    run = ingest(plan_document=planned)
    ranges = [(payload["first"], payload["end"]) for name, payload in run.calls if name == "caption_figures"]
    assert ranges == [(0, MIN_FIGURES), (MIN_FIGURES, 2 * MIN_FIGURES), (2 * MIN_FIGURES, count)]
    last_caption = max(place for place, name in enumerate(names(run)) if name == "caption_figures")
    assert last_caption < names(run).index("write_blocks")


def test_only_the_figures_that_failed_are_captioned_again() -> None:
    planned = Planned(new_count=9, new_figure_count=9, moved_count=0, kept_count=0, gone_count=0)
    run = ingest(plan_document=planned, caption_figures=failing(1, BUSY, Done()))
    firsts = [payload["first"] for name, payload in run.calls if name == "caption_figures"]
    assert firsts == [0, MIN_FIGURES, 0]
    assert run.output["outcome"] == "ready"


def test_a_document_without_new_blocks_is_finished_all_the_same() -> None:
    run = ingest(plan_document=Planned(new_count=0, moved_count=0, kept_count=3, gone_count=2))
    assert "write_blocks" not in names(run)
    assert "finish_document" in names(run)


def test_a_bad_file_is_closed_with_its_reason_and_never_tried_again() -> None:
    run = ingest(parse_document=BROKEN)
    (closing,) = [payload for name, payload in run.calls if name == "close_document"]
    assert names(run) == ["accept_document", "parse_document", "close_document"]
    assert (closing["status"], closing["reason"], closing["hint"]) == (
        "failed",
        "The PDF is damaged.",
        "Export it again.",
    )
    assert run.output["outcome"] == "failed"


def test_a_failure_that_may_pass_is_tried_again_after_the_pause_that_was_asked_for() -> None:
    run = ingest(write_blocks=failing(1, BUSY, Done()))
    assert names(run).count("write_blocks") == 2
    assert run.output["outcome"] == "ready"
    assert run.returned_after_s == pytest.approx(5)


def test_only_the_ranges_that_failed_are_tried_again() -> None:
    planned = Planned(new_count=5 * MIN_RANGE, moved_count=0, kept_count=0, gone_count=0)
    run = ingest(plan_document=planned, write_blocks=failing(2, BUSY, Done()))
    firsts = [payload["first"] for name, payload in run.calls if name == "write_blocks"]
    assert firsts == [0, 64, 128, 192, 256, 0, 64]


@pytest.mark.parametrize("rests", range(len(RESTS_S)))
def test_an_outage_ends_the_execution_and_the_next_one_comes_later(rests: int) -> None:
    run = ingest(accept_document=CHANGED.model_copy(update={"rests": rests}), describe_document=BUSY)
    marks = [payload["last_attempt"] for name, payload in run.calls if name == "describe_document"]
    assert marks == [False] * (1 + len(PAUSES_S))
    name, payload = run.calls[-1]
    assert (name, payload["pause_s"], payload["has_failed"]) == ("rest_document", RESTS_S[rests], True)
    assert (run.output["outcome"], run.continued_with) == ("rests", None)


def test_a_service_may_ask_for_a_longer_pause() -> None:
    run = ingest(plan_document=BUSY.model_copy(update={"retry_after_s": 60.0}))
    assert names(run).count("plan_document") == 1
    assert run.calls[-1][1]["pause_s"] == 60


def test_the_last_attempt_of_an_outage_knows_that_it_is_the_last_and_ends_as_a_failure() -> None:
    long = BUSY.model_copy(update={"retry_after_s": 60.0})
    run = ingest(accept_document=RESTED, describe_document=long)
    marks = [payload["last_attempt"] for name, payload in run.calls if name == "describe_document"]
    assert marks == [False] * len(PAUSES_S) + [True]
    assert run.output["outcome"] == "failed"


def test_a_small_document_rests_as_often_although_its_step_is_the_first() -> None:
    failed = BUSY.model_copy(update={"wish": 3, "work": "etag", "rests": 1})
    run = ingest(accept_document=failed)
    name, payload = run.calls[-1]
    assert (name, payload["pause_s"]) == ("rest_document", RESTS_S[1])
    assert (payload["step"]["wish"], payload["step"]["work"]) == (3, "etag")
    run = ingest(accept_document=failed.model_copy(update={"rests": len(RESTS_S)}))
    assert names(run) == ["accept_document"] * 3 + ["close_document"]
    assert run.calls[-2][1]["last_attempt"]


@pytest.mark.parametrize("reply", [Fenced(), Closed(again=True)])
def test_a_wish_that_comes_meanwhile_ends_the_rest(reply: IngestReply) -> None:
    run = ingest(plan_document=BUSY.model_copy(update={"retry_after_s": 60.0}), rest_document=reply)
    assert run.continued_with == {"blob_name": "a.pdf"}


def test_an_execution_that_cannot_even_rest_ends() -> None:
    run = ingest(plan_document=BUSY.model_copy(update={"retry_after_s": 60.0}), rest_document=BROKEN)
    assert (names(run).count("rest_document"), run.continued_with) == (1, None)


def test_waiting_for_others_is_no_failure() -> None:
    run = ingest(parse_document=failing(2, WAITS, Parsed(version_key="abc")))
    marks = [payload["last_attempt"] for name, payload in run.calls if name == "parse_document"]
    assert marks == [False] * 3
    assert run.output["outcome"] == "ready"


def test_who_waits_long_for_others_gives_up_the_place_however_often() -> None:
    run = ingest(accept_document=RESTED, parse_document=WAITS)
    name, payload = run.calls[-1]
    assert (name, payload["has_failed"]) == ("rest_document", False)
    assert run.output["outcome"] == "rests"


def test_a_service_that_stays_busy_is_no_try_of_the_bytes() -> None:
    run = ingest(accept_document=RESTED, plan_document=BUSY)
    assert run.output["outcome"] == "failed"
    assert run.calls[-1][1]["may_pass"]


def test_a_document_that_failed_after_waiting_has_failed() -> None:
    run = ingest(parse_document=failing(2, WAITS, BROKEN))
    assert names(run)[-1] == "close_document"
    assert not run.calls[-1][1]["may_pass"]


def test_a_step_that_is_lost_again_and_again_leaves_the_document_to_the_next_execution() -> None:
    run = ingest(finish_document=Reply(failure="the worker died"))
    assert "the worker died" in (run.error or "")
    assert names(run)[-1] == "finish_document"


def test_a_step_that_was_fenced_off_is_followed_by_a_new_look() -> None:
    run = ingest(plan_document=Fenced())
    assert names(run)[-1] == "plan_document"
    assert run.continued_with == {"blob_name": "a.pdf"}


def test_an_ingestion_that_can_neither_begin_nor_end_stops() -> None:
    run = ingest(accept_document=BROKEN, close_document=Fenced())
    assert run.output["outcome"] == "failed"
    assert run.continued_with is None


@pytest.mark.parametrize(
    ("changes", "wish"),
    [
        ({"accept_document": BROKEN}, 0),
        ({"accept_document": BROKEN.model_copy(update={"wish": 7})}, 7),
        ({"accept_document": CHANGED.model_copy(update={"wish": 5}), "parse_document": BROKEN}, 5),
        ({"accept_document": CHANGED.model_copy(update={"wish": 5})}, 5),
    ],
)
def test_the_wish_of_the_look_is_what_is_closed(changes: dict[str, Answer], wish: int) -> None:
    run = ingest(**changes)
    (closing,) = [payload for name, payload in run.calls if name == "close_document"]
    assert closing["step"]["wish"] == wish
    assert {payload["fence"] for name, payload in run.calls if "fence" in payload} == {
        closing["step"]["fence"]
    }


@pytest.mark.parametrize("changes", [{}, {"parse_document": BROKEN}])
def test_an_event_that_came_meanwhile_is_followed(changes: dict[str, Answer]) -> None:
    run = ingest(close_document=Closed(again=True), **changes)
    assert run.continued_with == {"blob_name": "a.pdf"}


def test_a_document_dropped_again_while_it_was_removed_is_ingested() -> None:
    run = ingest(accept_document=Accepted(outcome="gone"), remove_document=Closed(again=True))
    assert run.continued_with == {"blob_name": "a.pdf"}


def test_a_range_that_waits_beside_one_that_fails_loses_no_try() -> None:
    planned = Planned(new_count=2 * MIN_RANGE, moved_count=0, kept_count=0, gone_count=0)
    replies: Iterator[IngestReply] = iter([*[BUSY, WAITS] * len(PAUSES_S), Done(), WAITS, BUSY, Done()])
    run = ingest(plan_document=planned, write_blocks=lambda _: next(replies))
    assert run.output["outcome"] == "ready"
