"""Where a run stands: the state that the loop's reducer takes and gives. Pure, frozen, small."""

from datetime import datetime
from typing import Literal

from shared.answering.steps import EvidenceFound, StepFailed
from shared.platform.models import Model
from shared.runs.plan import QueryIntent, QueryType, TodoItem
from shared.subagents.models import SubagentStart

Phase = Literal[
    "plan",
    "resolve",
    "ask",
    "await",
    "take",
    "gather",
    "refine",
    "write",
    "delegate",
    "commit",
    "fail",
    "end",
]


class LoopState(Model):
    """Where a run stands.

    Attributes:
        step: the next action's number; counts from 1 and names its place in working memory.
        tries: tries of the current step so far.
        delay_s: how long to wait before the next one.
        attempt, max_attempts: at finding evidence; from the second on wherever there may be some.
        plan_step, evidence_step, answer_step: which step's result is to be used; 0 = none yet.
        refines: whether evidence that is not sure is put in order by a model.
        gathered_step: the evidence as it was found, before that.
        todo_changed: the todo list is not as it was shown last.
        is_choice: a person chose the documents.
        delegation_step: the step that chose sub-agents for the attempt's answer; 0 = none did.
        children, children_until: these, while they are at work.
        tokens: that all models have read and written for the run so far, its sub-agents included.
    """

    phase: Phase = "plan"
    step: int = 1
    tries: int = 0
    delay_s: float = 0.0
    query_type: QueryType = "CONTENT_SEARCH"
    intent: QueryIntent = "fact_lookup"
    todo: tuple[TodoItem, ...] = ()
    todo_changed: bool = False
    plan_step: int = 0
    ask_step: int = 0
    ask_timeout_s: float = 0.0
    timed_out: bool = False
    is_choice: bool = False
    attempt: int = 1
    max_attempts: int = 1
    refines: bool = False
    gathered_step: int = 0
    evidence_step: int = 0
    evidence: EvidenceFound | None = None
    widened: bool = False
    delegation_step: int = 0
    children: tuple[SubagentStart, ...] = ()
    children_until: datetime | None = None
    answer_step: int = 0
    abstained: bool = False
    failure: StepFailed | None = None
    tokens: int = 0


def advance(state: LoopState, phase: Phase, **changes: object) -> LoopState:
    """The next step, in `phase`, tried for the first time."""
    return state.model_copy(
        update={"phase": phase, "step": state.step + 1, "tries": 0, "delay_s": 0.0, **changes}
    )
