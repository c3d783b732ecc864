"""What the loop makes of evidence, answers and failures: enough, another attempt, or the end. Pure."""

from shared.core.loop_state import LoopState, Phase, advance
from shared.core.run_deadline import has_time_for_retry
from shared.core.todo import evidence_found, tried_again
from shared.models.steps import AnswerWritten, EvidenceFound, StepFailed

MAX_TRIES = 2  # of one step: a service that failed twice within its own retries will fail again
# Of storing the end, or a person's choice: the work is done, a storage that is away for minutes comes back.
MAX_PATIENT_TRIES = 8
WEAK_SCORE = 0.5  # below it a search within the documents named found nothing to the point; unmeasured
# contracts.md, section 4: low_retrieval_confidence_top_score, low_score_spread_ambiguity, candidate_count.
LOW_SCORE, LOW_SPREAD, MANY_HITS = 0.62, 0.08, 6
CLEARLY_BETTER = 0.15  # high_score_spread_clarity of contracts.md, section 4
_PATIENT: frozenset[Phase] = frozenset({"take", "commit", "fail"})
_FIRST_DELAY_S = 2.0
_LONGEST_DELAY_S = 60.0


def judge_evidence(state: LoopState, found: EvidenceFound) -> LoopState:
    """Write from it, put it in order first, or look elsewhere."""
    if state.phase == "refine":
        return advance(state, "write", evidence=found, evidence_step=state.step)
    if state.attempt > 1:
        return _judge_second_evidence(state, found)
    best = {"evidence": found, "evidence_step": state.step, "gathered_step": state.step}
    if found.narrowed and not state.widened and not state.is_choice and _is_weak(state, found):
        # A search narrowed to the documents that the question seems to name may have named the wrong ones.
        kept = best if found.hit_count else {}
        return advance(state, "gather", widened=True, **kept)
    named = state.evidence
    if named is not None and found.top_score < named.top_score + CLEARLY_BETTER:
        # Elsewhere nothing is clearly better: what was named is what was meant.
        return _enough(state)
    if found.hit_count == 0 and _may_try_again(state) and not found.hurried:
        return _try_again(state)
    return _enough(state.model_copy(update=best))


def _judge_second_evidence(state: LoopState, found: EvidenceFound) -> LoopState:
    if state.answer_step and not found.new_count:
        return advance(state, "commit")  # the same passages would give the same answer
    latest = {"evidence": found, "evidence_step": state.step, "gathered_step": state.step}
    return _enough(state.model_copy(update=latest))


def _enough(state: LoopState) -> LoopState:
    """Evidence is gathered: it is written from, after a model has put it in order if it is not sure."""
    if state.evidence is None or state.evidence.hit_count == 0:
        return advance(state, "write")
    # A summary or a comparison needs its passages whole: nothing is sorted out there.
    may_refine = state.refines and state.query_type == "CONTENT_SEARCH" and not state.evidence.hurried
    is_refined = may_refine and _is_unsure(state.evidence)
    return advance(state, "refine" if is_refined else "write", todo=evidence_found(state.todo))


def _is_unsure(found: EvidenceFound) -> bool:
    """The positive triggers of contracts.md, section 4, that speak of retrieval."""
    is_close = found.score_spread < LOW_SPREAD and found.hit_count >= MANY_HITS
    return found.top_score < LOW_SCORE or is_close


def _is_weak(state: LoopState, found: EvidenceFound) -> bool:
    if found.hit_count == 0:
        return True
    # A summary or a comparison is of the documents named, however little they resemble the question's words.
    # Runs planned before attempts were counted widened only what found nothing; they go on so.
    may_lie_elsewhere = state.query_type == "CONTENT_SEARCH" and state.max_attempts > 1
    return may_lie_elsewhere and found.top_score < WEAK_SCORE


def judge_answer(state: LoopState, written: AnswerWritten) -> LoopState:
    """Commit it, or look further when it says that there is nothing."""
    answered = state.model_copy(update={"answer_step": state.step, "abstained": written.abstained})
    if written.abstained and _may_try_again(state) and not written.hurried:
        return _try_again(answered)
    return advance(answered, "commit")


def _may_try_again(state: LoopState) -> bool:
    return state.attempt < state.max_attempts


def _try_again(state: LoopState) -> LoopState:
    return advance(
        state,
        "gather",
        attempt=state.attempt + 1,
        widened=not state.is_choice,
        delegation_step=0,  # the next answer may be delegated, too: of what was spent the policy knows
        todo=tried_again(state.todo),
    )


def after_failure(state: LoopState, failed: StepFailed) -> LoopState:
    """Try the step again, go on with what there is, or report."""
    delay_s = retry_delay_s(state.phase, state.tries, failed)
    if delay_s is not None:
        return state.model_copy(
            update={
                "step": state.step + 1,
                "tries": state.tries + 1,
                "delay_s": delay_s,
                "todo": tried_again(state.todo),
            }
        )
    if state.phase == "fail":
        # Nothing more can be said to anybody; readers are told by whoever finds the run without an end.
        return advance(state, "end")
    if state.phase in ("gather", "write") and state.answer_step:
        return advance(state, "commit")  # the first attempt's answer, that there is none, still holds
    if state.phase == "gather" and state.evidence is not None:
        return advance(state, "write", todo=evidence_found(state.todo))
    if state.phase == "refine":
        return advance(state, "write")
    return advance(state, "fail", failure=failed)


def retry_delay_s(phase: Phase, tries: int, failed: StepFailed) -> float | None:
    """Seconds after which a step that failed is tried again; None = it is not.

    Args:
        tries: that failed before this one.
    """
    if not failed.retryable:
        return None
    delay_s = _delay_s(phase, tries, failed)
    if phase in _PATIENT:
        return delay_s if tries + 1 < MAX_PATIENT_TRIES else None
    has_time = has_time_for_retry(phase, delay_s, failed.remaining_s)
    return delay_s if tries + 1 < MAX_TRIES and has_time else None


def _delay_s(phase: Phase, tries: int, failed: StepFailed) -> float:
    if phase == "write" and failed.remaining_s is None:
        return 0.0  # stored histories, of versions that waited for nothing here, have no timer
    doubled: float = _FIRST_DELAY_S * 2.0**tries
    return min(max(doubled, failed.retry_after_s or 0.0), _LONGEST_DELAY_S)
