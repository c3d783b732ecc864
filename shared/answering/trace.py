"""Records the trace spans of a run and its sub-agents from stored data after the run has ended.

Span ids are known from the beginning, so child spans may have been recorded long before. Never raises, since
tracing must not fail a run.
"""

from datetime import UTC, datetime

from shared.answering.children import Child, children_of, delegations_of
from shared.answering.services import SubagentServices
from shared.answering.subagent_models import Delegation
from shared.answering.views import final_status
from shared.platform import tracing
from shared.platform.errors import GroundworkError
from shared.platform.telemetry import get_logger, pseudonym
from shared.platform.tracing import TraceLink, link_below
from shared.runs.journal import read_journal
from shared.runs.models import RunRecord
from shared.runs.run_store import RunStore


async def record_end(run_id: str, link: TraceLink, services: SubagentServices, runs: RunStore) -> None:
    """Record the trace spans of a run that has ended. Do nothing if tracing is off.

    Args:
        link: the orchestration's position in a trace.
    """
    if not tracing.is_on():
        return
    try:
        record = await runs.get(run_id)
        journal = await read_journal(services.run_log, services.blobs, run_id)
        delegations = await delegations_of(journal)
        children = await children_of(journal, delegations)
    except GroundworkError as failed:
        get_logger().warning("trace.incomplete", run_id=run_id, error_type=failed.code)
        return
    by_step = {delegation.step: delegation for delegation in delegations}
    for child in children:
        is_cancelled = record is not None and record.status == "cancelled"
        _record_child(child, by_step[child.task.step], link, is_cancelled=is_cancelled)
    if record is not None:
        _record_run(record, link)


def _record_run(record: RunRecord, link: TraceLink) -> None:
    is_answer = record.profile == "answer"
    thread = {"gen_ai.conversation.id": record.thread_id, "thread_id": record.thread_id} if is_answer else {}
    attributes: tracing.Attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "groundwork" if is_answer else record.profile,
        **thread,
        "run_id": record.run_id,
        "user_id": pseudonym(record.owner_id),
        "groundwork.status": record.status,
    }
    error_type = record.error_type or "" if record.status == "failed" else ""
    name = "answer_question" if is_answer else record.profile
    tracing.record(name, link, attributes, error_type=error_type, ended_at=record.finished_at)


def _record_child(child: Child, delegation: Delegation, parent: TraceLink, *, is_cancelled: bool) -> None:
    task, state = child.task, child.state
    link = link_below(parent.own, task.child_id, delegation.decided_at)
    if link is None:
        return
    ended_at = min(state.ended_at or task.deadline, datetime.now(UTC))
    is_cut_off = is_cancelled and state.status == "running"
    status = "cancelled" if is_cut_off else final_status(child, datetime.now(UTC))
    attributes: tracing.Attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": task.profile,
        "run_id": task.run_id,
        "child": task.index,
        "groundwork.status": status,
        "groundwork.turns": state.turns_ended,
        "groundwork.tokens": state.tokens,
        "groundwork.findings": len(state.findings),
    }
    error_type = "SubagentFailed" if status == "failed" else ""
    tracing.record(
        f"run_sub_agent {task.profile}", link, attributes, error_type=error_type, ended_at=ended_at
    )
