"""Sub-agents as people see them: made from tasks and states, live and afterwards; never a transcript."""

from collections.abc import Sequence
from datetime import datetime

from shared.agents.sub_agents.stored import Child
from shared.core.delegation_words import SubagentWords
from shared.models.delegation import REASON_WORDS
from shared.models.subagents import ChildStatus, Delegation, SubagentEnd, SubagentState, SubagentView


def view_of(delegation: Delegation, child: Child, words: SubagentWords, status: ChildStatus) -> SubagentView:
    """One sub-agent, with the status that its parent gives it."""
    state = child.state or SubagentState(child_id=child.task.child_id, profile=child.task.profile)
    read_from = (*(hit.doc_id for hit in state.hits), *child.task.doc_ids)
    return SubagentView(
        child_id=child.task.child_id,
        profile=state.profile,
        badge=words.badges[state.profile],
        status=status,
        reason_codes=delegation.decided.reason_codes,
        reasons=tuple(REASON_WORDS[code] for code in delegation.decided.reason_codes),
        started_at=state.started_at,
        ended_at=state.ended_at,
        turns=state.turns_ended,
        tokens=state.tokens,
        cost_usd=state.cost_usd,
        tool_calls=state.tool_uses,
        doc_ids=tuple(dict.fromkeys(read_from)),
        claims=len(state.findings),
        proved=sum(bool(finding.proofs) for finding in state.findings),
        uncertainty=state.uncertainty,
        warnings=tuple(words.warnings[code] for code in dict.fromkeys(state.warnings)),
    )


def live_status(child: Child, now: datetime) -> ChildStatus:
    """What a look from outside tells, while nobody has collected: who says nothing after its time is late."""
    if child.state is not None and child.state.status != "running":
        return child.state.status
    return "running" if now < child.task.deadline else "late"


def final_status(child: Child, now: datetime) -> ChildStatus:
    """How a child has ended that is over: late, if its time was up before it said so; else it broke off."""
    if child.state is not None and child.state.status != "running":
        return child.state.status
    return "failed" if now < child.task.deadline else "late"


def end_of(child: Child, status: ChildStatus) -> SubagentEnd:
    """Its end, as control and metrics count it."""
    if child.state is None:
        return SubagentEnd(child_id=child.task.child_id, status=status)
    return SubagentEnd(
        child_id=child.task.child_id,
        status=status,
        turns=child.state.turns_ended,
        tokens=child.state.tokens,
        cost_usd=child.state.cost_usd,
    )


def states_of(children: Sequence[Child]) -> tuple[SubagentState, ...]:
    """What there is of them."""
    return tuple(child.state for child in children if child.state is not None)
