"""Sub-agents as people see them: made from tasks and states, live and afterwards; never a transcript."""

from datetime import UTC, datetime

from shared.evidence.reader_text import readable
from shared.platform.blobs import BlobStore
from shared.runs.models import ChildStatus, RunRecord, SubagentView
from shared.subagents.artifacts import Child, children_of, delegations_of
from shared.subagents.messages import SubagentWords, subagent_words
from shared.subagents.models import Delegation, SubagentState
from shared.subagents.policy_models import REASON_WORDS

_MOST_UNCERTAIN = 8  # sentences, each no longer than these: a glance, no report
_MOST_CHARS = 300


async def live_views(record: RunRecord, blobs: BlobStore) -> tuple[SubagentView, ...]:
    """All sub-agents of a run as they are now, whatever became of the run."""
    now, words = datetime.now(UTC), subagent_words(record.question)
    status_of = live_status if record.finished_at is None else final_status
    delegations = await delegations_of(blobs, record.run_id)
    by_step = {delegation.step: delegation for delegation in delegations}
    children = await children_of(blobs, delegations)
    return tuple(view_of(by_step[child.task.step], child, words, status_of(child, now)) for child in children)


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
        claims=sum(finding.kind != "section" for finding in state.findings),
        proved=sum(bool(finding.proofs) for finding in state.findings),
        uncertainty=tuple(_sentence(text) for text in state.uncertainty[:_MOST_UNCERTAIN]),
        warnings=_warnings(state, status, words),
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


def _warnings(state: SubagentState, status: ChildStatus, words: SubagentWords) -> tuple[str, ...]:
    told = [words.warnings[code] for code in dict.fromkeys(state.warnings)]
    # Who was ended by its parent, or broke off, could say nothing of it.
    is_silent = status in ("late", "failed") and state.status == "running"
    return (words.ended[status], *told) if is_silent else tuple(told)


def _sentence(text: str) -> str:
    """A model's words, safe to show in one line."""
    line = " ".join(text.split())
    return readable(line if len(line) <= _MOST_CHARS else line[:_MOST_CHARS].rstrip() + "…")
