"""What the loop does before and after it has evidence: asks, looks elsewhere, looks again, sorts out."""

from datetime import UTC, datetime

import pytest

from shared.answering.loop import MAX_PATIENT_TRIES, LoopState, next_action, observe
from shared.answering.steps import (
    AnswerArrived,
    AnswerTaken,
    AnswerTimedOut,
    AwaitAnswer,
    CommitAnswer,
    EvidenceFound,
    MakePlan,
    Observation,
    RetrieveBlocks,
    SubagentsChosen,
    SubagentsEnded,
    TakeAnswer,
    WriteAnswer,
)
from shared.runs.plan import QueryType
from shared.subagents.models import SubagentEnd, SubagentStart
from tests.unit.answering.loop_runs import (
    ABSTAINED,
    AMBIGUOUS,
    ASKED,
    CLEAR,
    CLOSE,
    DOWN,
    FOUND,
    NAMING,
    PERSISTENT,
    REFINING,
    REFUSED,
    STRONGER,
    UNSURE,
    WEAK,
    WRITTEN,
    planned,
    run,
    step_of,
)


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


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HURRIED = UNSURE.model_copy(update={"hurried": True})


def test_with_little_time_evidence_is_not_put_in_order() -> None:
    assert run(REFINING, UNSURE)[0][-1] == "refine_evidence"
    assert run(REFINING, HURRIED)[0][-1] == "write_answer"


def test_with_little_time_nothing_is_looked_for_once_more() -> None:
    assert run(PERSISTENT, FOUND, ABSTAINED)[0][-1] == "retrieve_blocks"
    late = ABSTAINED.model_copy(update={"hurried": True})
    assert run(PERSISTENT, FOUND, late)[0][-1] == "commit_answer"
    nothing = EvidenceFound(hit_count=0, document_count=0)
    assert run(PERSISTENT, nothing)[0][-1] == "retrieve_blocks"
    assert run(PERSISTENT, nothing.model_copy(update={"hurried": True}))[0][-1] == "write_answer"


def test_a_step_is_tried_again_only_while_there_is_time() -> None:
    for remaining_s, kind in ((20.0, "write_answer"), (4.0, "report_failure")):
        failed = DOWN.model_copy(update={"remaining_s": remaining_s})
        assert run(planned(), FOUND, failed)[0][-1] == kind


def test_storing_the_end_is_tried_however_late_it_is() -> None:
    late = DOWN.model_copy(update={"remaining_s": -60.0})
    assert run(planned(), FOUND, WRITTEN, late)[0][-1] == "commit_answer"


def test_a_step_knows_how_often_it_failed() -> None:
    for failures, tries in (((), 0), ((DOWN,), 1)):
        written, made = step_of(run(planned(), FOUND, *failures)[1]), step_of(run(*failures)[1])
        assert isinstance(written, WriteAnswer)
        assert isinstance(made, MakePlan)
        assert (written.tries, made.tries) == (tries, tries)


def test_a_second_attempt_may_be_delegated_anew() -> None:
    start = SubagentStart(
        child_id="r:s003c0",
        run_id="r",
        step=3,
        index=0,
        deadline=NOON,
        max_turns=1,
        retry_count=0,
        retry_backoff_ms=0,
        profiles=("doc_reader",),
    )
    chosen, ended = SubagentsChosen(children=(start,), until=NOON), SubagentsEnded(ends=())
    kinds, state = run(PERSISTENT, FOUND, chosen, ended)
    assert kinds[2:] == ["write_answer", "run_subagents", "write_answer"]
    second = step_of(state)
    assert isinstance(second, WriteAnswer)
    assert second.delegation_step == 3
    more = FOUND.model_copy(update={"new_count": 1})
    again = step_of(run(PERSISTENT, FOUND, chosen, ended, ABSTAINED, more)[1])
    assert isinstance(again, WriteAnswer)
    assert (again.delegation_step, again.replaces) == (0, 5)


def test_tokens_of_steps_and_of_sub_agents_add_up_and_silence_counts_whole() -> None:
    starts = tuple(
        SubagentStart(
            child_id=f"r:s003c{index}",
            run_id="r",
            step=3,
            index=index,
            deadline=NOON,
            max_turns=1,
            max_tokens=8000,
            retry_count=0,
            retry_backoff_ms=0,
            profiles=("doc_reader",),
        )
        for index in range(2)
    )
    told = SubagentEnd(child_id="r:s003c0", status="done", tokens=1200)
    silent = SubagentEnd(child_id="r:s003c1", status="late")
    state = observe(LoopState(), planned(), 500)
    state = observe(observe(state, FOUND), SubagentsChosen(children=starts, until=NOON))
    assert observe(state, SubagentsEnded(ends=(told, silent))).tokens == 500 + 1200 + 8000
