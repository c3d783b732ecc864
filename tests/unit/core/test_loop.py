"""The loop decides the same for equal states, and always ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.judging import MAX_PATIENT_TRIES
from shared.core.loop import next_action, observe, start
from shared.core.loop_state import LoopState
from shared.models.plan import QueryType, TodoItem
from shared.models.steps import (
    AnswerArrived,
    AnswerTaken,
    AnswerTimedOut,
    AnswerWritten,
    AwaitAnswer,
    CommitAnswer,
    DocumentsResolved,
    EndRun,
    EvidenceFound,
    Observation,
    PlanMade,
    ReportFailure,
    RetrieveBlocks,
    RunClosed,
    Step,
    StepFailed,
    TakeAnswer,
    UserAsked,
    WriteAnswer,
)

TODO = (
    TodoItem(position=1, description="The limit is known", acceptance_criteria="cited"),
    TodoItem(position=2, description="It is explained", acceptance_criteria="cited", dependencies=(1,)),
)
NOTHING = EvidenceFound(hit_count=0, document_count=0, narrowed=True)
FOUND = EvidenceFound(hit_count=4, document_count=2, top_score=0.8, score_spread=0.2)
WRITTEN = AnswerWritten(abstained=False, citation_count=2, unsupported_claims=0)
DOWN = StepFailed(error_type="NetworkError", message="The model is out of reach.", retryable=True)
REFUSED = StepFailed(error_type="AuthenticationError", message="Refused.", retryable=False)


def planned(query_type: QueryType = "CONTENT_SEARCH") -> PlanMade:
    return PlanMade(query_type=query_type, intent="fact_lookup", todo=TODO)


def run(*observations: Observation) -> tuple[list[str], LoopState]:
    """Kinds of the actions decided before and after each observation, and the last state."""
    state = start()
    kinds: list[str] = [next_action(state).kind]
    for observation in observations:
        state = observe(state, observation)
        kinds.append(next_action(state).kind)
    return kinds, state


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


PERSISTENT = planned().model_copy(update={"max_attempts": 2})
ABSTAINED = AnswerWritten(abstained=True, citation_count=0, unsupported_claims=0)
WEAK = EvidenceFound(hit_count=4, document_count=1, top_score=0.3, narrowed=True)
STRONGER = EvidenceFound(hit_count=4, document_count=2, top_score=0.8)
AMBIGUOUS = DocumentsResolved(document_count=0, is_ambiguous=True)
CLEAR = DocumentsResolved(document_count=1, is_ambiguous=False)
NAMING = PERSISTENT.model_copy(update={"names_documents": True})
ASKED = UserAsked(timeout_s=60)


def test_a_question_that_names_documents_finds_out_first_which_they_are() -> None:
    kinds, state = run(NAMING, CLEAR)
    assert kinds == ["make_plan", "resolve_documents", "retrieve_blocks"]
    assert state.plan_step == 2


def test_an_ambiguous_name_is_asked_about_and_the_choice_is_kept_to() -> None:
    kinds, state = run(NAMING, AMBIGUOUS, ASKED, AnswerArrived(), AnswerTaken(is_choice=True), WEAK)
    assert kinds[2:] == ["ask_user", "await_answer", "take_answer", "retrieve_blocks", "write_answer"]
    again = next_action(observe(state, ABSTAINED))
    assert isinstance(again, RetrieveBlocks)
    assert (again.attempt, again.widened) == (2, False)


def test_the_wait_is_named_by_the_step_that_asked() -> None:
    _, state = run(NAMING, AMBIGUOUS, ASKED)
    assert next_action(state) == AwaitAnswer(ask_step=3, timeout_s=60)


def test_without_an_answer_the_run_goes_on_all_the_same() -> None:
    _, state = run(NAMING, AMBIGUOUS, ASKED, AnswerTimedOut())
    action = next_action(state)
    assert isinstance(action, TakeAnswer)
    assert action.timed_out
    assert next_action(observe(state, AnswerTaken(is_choice=False))).kind == "retrieve_blocks"


def test_taking_an_answer_is_tried_for_minutes() -> None:
    kinds, _ = run(NAMING, AMBIGUOUS, ASKED, AnswerArrived(), *[DOWN] * MAX_PATIENT_TRIES)
    assert kinds.count("take_answer") == MAX_PATIENT_TRIES


def test_a_weak_search_in_named_documents_looks_elsewhere_and_stays_unless_that_is_better() -> None:
    kinds, state = run(PERSISTENT, WEAK)
    assert (kinds[-1], state.widened) == ("retrieve_blocks", True)
    for elsewhere, evidence_step in ((STRONGER, 3), (WEAK, 2)):
        action = next_action(observe(state, elsewhere))
        assert isinstance(action, WriteAnswer)
        assert action.evidence_step == evidence_step


def test_a_wider_search_that_fails_costs_nothing() -> None:
    action = next_action(run(PERSISTENT, WEAK, REFUSED)[1])
    assert isinstance(action, WriteAnswer)
    assert action.evidence_step == 2


@pytest.mark.parametrize("query_type", ["COMPARISON", "DOCUMENT_SUMMARY"])
def test_what_is_about_the_documents_themselves_stays_within_them(query_type: QueryType) -> None:
    assert run(PERSISTENT.model_copy(update={"query_type": query_type}), WEAK)[0][-1] == "write_answer"


def test_an_answer_that_there_is_none_is_looked_for_once_more() -> None:
    kinds, state = run(PERSISTENT, FOUND, ABSTAINED)
    assert kinds[-1] == "retrieve_blocks"
    action = next_action(state)
    assert isinstance(action, RetrieveBlocks)
    assert (action.widened, action.attempt, action.seen_step) == (True, 2, 2)
    assert [(item.status, item.attempts) for item in action.todo] == [("done", 1), ("in_progress", 2)]


@pytest.mark.parametrize("query_type", ["LISTING", "METADATA_SEARCH"])
def test_what_descriptions_do_not_tell_is_looked_for_in_the_content(query_type: QueryType) -> None:
    persistent = PERSISTENT.model_copy(update={"query_type": query_type})
    kinds = run(persistent, FOUND, ABSTAINED)[0]
    assert kinds[1:] == ["find_documents", "write_answer", "retrieve_blocks"]


def test_new_evidence_gives_a_new_answer_that_replaces_the_first() -> None:
    more = FOUND.model_copy(update={"new_count": 3})
    _, state = run(PERSISTENT, FOUND, ABSTAINED, more)
    action = next_action(state)
    assert isinstance(action, WriteAnswer)
    assert (action.evidence_step, action.replaces) == (4, 3)
    commit = next_action(observe(state, ABSTAINED))
    assert isinstance(commit, CommitAnswer)
    assert (commit.answer_step, {item.status for item in commit.todo}) == (5, {"failed"})


@pytest.mark.parametrize("second", [FOUND.model_copy(update={"new_count": 0}), REFUSED])
def test_when_there_is_nothing_new_the_first_answer_stands(second: Observation) -> None:
    action = next_action(run(PERSISTENT, FOUND, ABSTAINED, second)[1])
    assert isinstance(action, CommitAnswer)
    assert action.answer_step == 3


def test_a_run_planned_before_attempts_were_counted_has_one() -> None:
    assert run(planned(), FOUND, ABSTAINED)[0][-1] == "commit_answer"
    assert run(planned(), WEAK)[0][-1] == "write_answer"


def test_items_of_the_todo_list_advance_with_the_run_and_are_shown_when_they_do() -> None:
    _, state = run(PERSISTENT)
    assert [item.status for item in state.todo] == ["in_progress", "pending"]
    assert step_of(state).todo == ()
    _, state = run(PERSISTENT, FOUND)
    assert [item.status for item in step_of(state).todo] == ["done", "in_progress"]


REFINING = PERSISTENT.model_copy(update={"refines": True})
UNSURE = EvidenceFound(hit_count=4, document_count=2, top_score=0.6, score_spread=0.2)
CLOSE = EvidenceFound(hit_count=6, document_count=2, top_score=0.9, score_spread=0.05)


@pytest.mark.parametrize("unsure", [UNSURE, CLOSE])
def test_evidence_that_is_not_sure_is_put_in_order_first(unsure: EvidenceFound) -> None:
    kinds, state = run(REFINING, unsure, unsure)
    assert kinds == ["make_plan", "retrieve_blocks", "refine_evidence", "write_answer"]
    action = next_action(state)
    assert isinstance(action, WriteAnswer)
    assert action.evidence_step == 3
    again = next_action(observe(state, ABSTAINED))
    assert isinstance(again, RetrieveBlocks)
    assert again.seen_step == 2  # what was sorted out is not new


@pytest.mark.parametrize("sure", [FOUND, CLOSE.model_copy(update={"hit_count": 5})])
def test_evidence_that_is_sure_is_written_from_at_once(sure: EvidenceFound) -> None:
    assert run(REFINING, sure)[0][-1] == "write_answer"


def test_nothing_is_sorted_out_of_a_comparison_or_when_a_setting_says_so() -> None:
    comparison = REFINING.model_copy(update={"query_type": "COMPARISON"})
    assert run(comparison, UNSURE)[0][-1] == "write_answer"
    assert run(PERSISTENT, UNSURE)[0][-1] == "write_answer"


def test_evidence_that_cannot_be_refined_is_written_from_as_it_is() -> None:
    _, state = run(REFINING, UNSURE, REFUSED)
    action = next_action(state)
    assert isinstance(action, WriteAnswer)
    assert action.evidence_step == 2


def step_of(state: LoopState) -> Step:
    action = next_action(state)
    assert isinstance(action, Step)
    return action


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
