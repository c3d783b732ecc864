"""The loop decides the same for equal states, and always ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.answering.loop import MAX_PATIENT_TRIES, LoopState, next_action, observe, start
from shared.answering.steps import (
    AnswerTaken,
    AnswerTimedOut,
    AnswerWritten,
    AwaitAnswer,
    CommitAnswer,
    EndRun,
    Observation,
    ReportFailure,
    RunClosed,
    Step,
    StepFailed,
    WriteAnswer,
)
from shared.runs.plan import QueryType
from tests.unit.answering.loop_runs import (
    ABSTAINED,
    AMBIGUOUS,
    ASKED,
    DOWN,
    FOUND,
    NAMING,
    NOTHING,
    REFUSED,
    UNSURE,
    WRITTEN,
    planned,
    run,
)


def test_a_question_goes_from_plan_to_committed_answer() -> None:
    kinds, _ = run(planned(), FOUND, WRITTEN, RunClosed())
    assert kinds == ["make_plan", "retrieve_blocks", "write_answer", "commit_answer", "end_run"]


@pytest.mark.parametrize("query_type", ["LISTING", "METADATA_SEARCH"])
def test_questions_about_documents_look_for_documents(query_type: QueryType) -> None:
    assert run(planned(query_type))[0][-1] == "find_documents"


def test_steps_are_numbered_and_name_the_results_they_build_on() -> None:
    _, state = run(planned(), FOUND)
    action = next_action(state)
    assert isinstance(action, WriteAnswer)
    assert (action.step, action.plan_step, action.evidence_step) == (3, 1, 2)


def test_a_narrow_search_without_result_is_widened_once() -> None:
    kinds, state = run(planned(), NOTHING)
    assert kinds[-1] == "retrieve_blocks"
    assert state.widened
    assert run(planned(), NOTHING, NOTHING)[0][-1] == "write_answer"


def test_a_step_that_may_succeed_later_is_tried_twice() -> None:
    kinds, state = run(planned(), DOWN)
    assert kinds[-1] == "retrieve_blocks"
    assert [item.attempts for item in state.todo] == [2, 0]
    assert run(planned(), DOWN, DOWN)[0][-1] == "report_failure"


def test_a_step_that_cannot_succeed_is_not_tried_again() -> None:
    kinds, state = run(planned(), REFUSED)
    action = next_action(state)
    assert kinds[-1] == "report_failure"
    assert isinstance(action, ReportFailure)
    assert action.error_type == "AuthenticationError"


def test_attempts_are_counted_for_each_phase_anew() -> None:
    assert run(DOWN, planned(), DOWN)[0][-1] == "retrieve_blocks"


def test_a_failure_ends_as_failed() -> None:
    _, state = run(REFUSED, RunClosed())
    assert next_action(state) == EndRun(outcome="failed")


def test_an_end_that_cannot_be_stored_is_tried_for_minutes_then_given_up() -> None:
    kinds, _ = run(planned(), FOUND, WRITTEN, *[DOWN] * (2 * MAX_PATIENT_TRIES))
    assert kinds.count("commit_answer") == MAX_PATIENT_TRIES
    assert kinds.count("report_failure") == MAX_PATIENT_TRIES
    assert kinds[-1] == "end_run"


def test_a_step_waits_longer_each_time_and_as_long_as_it_was_asked_to() -> None:
    patient = DOWN.model_copy(update={"retry_after_s": 20.0})
    assert waiting(run(planned(), patient)[1]) == 20.0
    delays = [waiting(run(planned(), FOUND, WRITTEN, *[DOWN] * tries)[1]) for tries in range(8)]
    assert delays == [0.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert waiting(run(DOWN, planned())[1]) == 0.0


def waiting(state: LoopState) -> float:
    action = next_action(state)
    assert isinstance(action, Step)
    return action.delay_s


def test_a_run_that_was_closed_by_another_ends() -> None:
    assert run(planned(), RunClosed())[0][-1] == "end_run"


def test_todo_items_are_closed_with_the_answer() -> None:
    for abstained, status in ((False, "done"), (True, "failed")):
        written = AnswerWritten(abstained=abstained, citation_count=0, unsupported_claims=0)
        action = next_action(run(planned(), FOUND, written)[1])
        assert isinstance(action, CommitAnswer)
        assert {item.status for item in action.todo} == {status}


OBSERVATIONS = st.sampled_from([planned(), planned("LISTING"), FOUND, NOTHING, WRITTEN, DOWN, REFUSED])


@given(st.lists(OBSERVATIONS, min_size=60, max_size=60))
def test_whatever_is_observed_every_phase_is_left_in_the_end(observations: list[Observation]) -> None:
    state = start()
    for observation in observations:
        action = next_action(state)
        assert next_action(LoopState.model_validate_json(state.model_dump_json())) == action
        if isinstance(action, EndRun):
            return
        is_step = isinstance(observation, StepFailed) and not isinstance(action, AwaitAnswer)
        fitting: Observation = observation if is_step else answering(action.kind)
        state = observe(state, fitting)
    pytest.fail("the loop did not end")


def answering(kind: str) -> Observation:
    answers: dict[str, Observation] = {
        "make_plan": NAMING,
        "resolve_documents": AMBIGUOUS,
        "ask_user": ASKED,
        "await_answer": AnswerTimedOut(),
        "take_answer": AnswerTaken(is_choice=False),
        "retrieve_blocks": NOTHING,
        "find_documents": FOUND,
        "refine_evidence": UNSURE,
        "write_answer": ABSTAINED,
        "commit_answer": RunClosed(),
        "report_failure": RunClosed(),
    }
    return answers[kind]
