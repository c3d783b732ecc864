"""What sub-agents brought, made into what the main agent writes from. Whatever a child did, this succeeds.

A child is judged by what it stored, not by how it ended: one that was cut off at the deadline is worth what
stands in its state; one that stored nothing is worth a warning.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.platform.concurrency import run_in_background, wait_briefly
from shared.runs.models import ChildStatus, SubagentView
from shared.runs.working_memory import Evidence, WorkingMemory
from shared.subagents.artifacts import Child, children_of, find_delegation
from shared.subagents.control import settle
from shared.subagents.merge import (
    Bounds,
    findings_xml,
    merge_evidence,
    proofs_of_each,
    tokens_of,
    web_section,
)
from shared.subagents.messages import SubagentWords, subagent_words, warning_of
from shared.subagents.metrics import note_ends
from shared.subagents.models import Delegation, FoundProof
from shared.subagents.services import SubagentServices
from shared.subagents.views import end_of, final_status, states_of, view_of

_EVIDENCE_SHARE = (
    0.6  # of the main agent's tokens; the rest is for findings, rules and the answer; unmeasured
)


@dataclass(frozen=True)
class Collected:
    """What the answer is written from after a delegation.

    Attributes:
        evidence: the main agent's and the sub-agents', what findings prove first.
        findings: `<findings>` for the answer prompt; empty = nobody found anything.
        proofs: of each document of a question about several, as far as a finding proves anything of it.
        views: the sub-agents as people see them.
        warnings: in words of the question's language: what did not go as it should.
        web: Markdown for the end of the answer: what the web says, with links, marked as from outside the
            documents; empty = nothing.
    """

    evidence: Evidence
    findings: str = ""
    proofs: tuple[FoundProof, ...] = ()
    views: tuple[SubagentView, ...] = ()
    warnings: tuple[str, ...] = ()
    web: str = ""


async def collect(
    memory: WorkingMemory, delegation_step: int, evidence: Evidence, services: SubagentServices
) -> Collected:
    """Merge what the children of a step stored into the evidence, and give their slots back.

    Args:
        evidence: the main agent's own.
    """
    delegation = await find_delegation(services.blobs, memory.run_id, delegation_step)
    if delegation is None:
        return Collected(evidence)
    children = await children_of(services.blobs, [delegation])
    words = subagent_words((await memory.request()).question)
    now = datetime.now(UTC)
    ended = [(child, final_status(child, now)) for child in children]
    settling = run_in_background(
        settle(
            services.settings, services.subagent_control, [end_of(child, status) for child, status in ended]
        )
    )
    await wait_briefly(settling, run_in_background(note_ends(services.subagent_metrics, delegation, ended)))
    states = states_of(children)
    targets = tuple(dict.fromkeys(doc_id for task in delegation.tasks for doc_id in task.doc_ids))
    is_listing = bool(evidence.records) and not evidence.hits
    return Collected(
        evidence=merge_evidence(evidence, states, targets, _bounds(evidence, services)),
        findings="" if is_listing else findings_xml(states),
        proofs=() if is_listing else proofs_of_each(states, targets),
        views=tuple(view_of(delegation, child, words, status) for child, status in ended),
        warnings=_warnings(delegation, ended, words),
        web=web_section(states, words),
    )


def _bounds(own: Evidence, services: SubagentServices) -> Bounds:
    """Never less than the main agent found by itself."""
    settings = services.settings
    return Bounds(
        passages=max(2 * settings.answering.answer_blocks, len(own.hits)),
        tokens=max(int(settings.subagents.reserve_tokens * _EVIDENCE_SHARE), tokens_of(own.hits)),
    )


def _warnings(
    delegation: Delegation, ended: Sequence[tuple[Child, ChildStatus]], words: SubagentWords
) -> tuple[str, ...]:
    told = [_warning(child, status, words) for child, status in ended]
    if not any(_has_brought(child) for child, _ in ended):
        told.append(words.fallbacks[delegation.decided.fallback_plan])
    return tuple(warning for warning in told if warning)


def _warning(child: Child, status: ChildStatus, words: SubagentWords) -> str:
    state = child.state
    profile = state.profile if state else child.task.profile
    codes = state.warnings if state else ()
    return warning_of(words, profile, status, codes, found=_has_brought(child))


def _has_brought(child: Child) -> bool:
    return child.state is not None and bool(child.state.findings or child.state.hits)
