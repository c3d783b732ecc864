"""Observations for tests of the loop, and a run through them."""

from shared.answering.loop import LoopState, next_action, observe, start
from shared.answering.steps import (
    AnswerWritten,
    DocumentsResolved,
    EvidenceFound,
    Observation,
    PlanMade,
    Step,
    StepFailed,
    UserAsked,
)
from shared.runs.plan import QueryType, TodoItem

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


PERSISTENT = planned().model_copy(update={"max_attempts": 2})
ABSTAINED = AnswerWritten(abstained=True, citation_count=0, unsupported_claims=0)
WEAK = EvidenceFound(hit_count=4, document_count=1, top_score=0.3, narrowed=True)
STRONGER = EvidenceFound(hit_count=4, document_count=2, top_score=0.8)
AMBIGUOUS = DocumentsResolved(document_count=0, is_ambiguous=True)
CLEAR = DocumentsResolved(document_count=1, is_ambiguous=False)
NAMING = PERSISTENT.model_copy(update={"names_documents": True})
ASKED = UserAsked(timeout_s=60)
REFINING = PERSISTENT.model_copy(update={"refines": True})
UNSURE = EvidenceFound(hit_count=4, document_count=2, top_score=0.6, score_spread=0.2)
CLOSE = EvidenceFound(hit_count=6, document_count=2, top_score=0.9, score_spread=0.05)


def run(*observations: Observation) -> tuple[list[str], LoopState]:
    """Kinds of the actions decided before and after each observation, and the last state."""
    state = start()
    kinds: list[str] = [next_action(state).kind]
    for observation in observations:
        state = observe(state, observation)
        kinds.append(next_action(state).kind)
    return kinds, state


def step_of(state: LoopState) -> Step:
    action = next_action(state)
    assert isinstance(action, Step)
    return action
