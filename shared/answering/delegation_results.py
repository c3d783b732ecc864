"""Merges the results of sub-agents into the main agent's evidence. Failed sub-agents only lead to warnings.

A sub-agent is judged by the state stored in the journal, not by how it ended. If it was stopped at the
deadline, its last state counts. A sub-agent without any state results in a warning.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.answering.children import Child, children_of, find_delegation
from shared.answering.control import settle
from shared.answering.findings_text import findings_xml, web_section
from shared.answering.passages import by_document, in_turns
from shared.answering.services import SubagentServices
from shared.answering.subagent_models import Delegation, SubagentEnd, SubagentState
from shared.answering.views import SubagentWords, final_status, subagent_words, view_of, warning_of
from shared.evidence.document_prompt import documents_with_blocks
from shared.platform.concurrency import run_in_background, wait_briefly
from shared.platform.models import Model
from shared.platform.tokens import CHARS_PER_TOKEN
from shared.retrieval.models import Hit, ReadableDocuments
from shared.runs.evidence import Evidence
from shared.runs.journal import Journal
from shared.runs.models import ChildStatus, SubagentView

# Minimum number of passages per target document, if it has that many.
_FEWEST_OF_EACH = 2
_EVIDENCE_SHARE = (
    0.6  # share of the main agent's tokens; the rest is for findings, rules and answer; unmeasured
)


@dataclass(frozen=True)
class Bounds:
    """Limits on an answer's evidence: the number of passages, and the tokens of their text."""

    passages: int
    tokens: int


class Collected(Model):
    """The material from which an answer is written after a delegation, as shown to model and users.

    Attributes:
        evidence: evidence of the main agent and its sub-agents; passages that prove findings come first.
        proofs: passages that prove findings; citable even if they don't fit into the prompt.
        findings: `<findings>` for the answer prompt; empty = none.
        views: the sub-agents as shown to users.
        warnings: problems, in the answer's language.
        web: Markdown section with statements from the web and links, labelled as outside sources; empty =
            none.
    """

    evidence: Evidence
    proofs: tuple[Hit, ...] = ()
    findings: str = ""
    views: tuple[SubagentView, ...] = ()
    warnings: tuple[str, ...] = ()
    web: str = ""

    @property
    def doc_ids(self) -> set[str]:
        """Ids of all documents and databases in the evidence."""
        return self.evidence.doc_ids | {hit.doc_id for hit in self.proofs}

    def only_readable(self, documents: ReadableDocuments) -> "Collected":
        """Return a copy that contains only evidence which the user may currently read.

        If any part is unreadable, all findings are removed, since each may repeat any document.
        """
        evidence = self.evidence.only_readable(documents)
        proofs = tuple(filter(documents.admits, self.proofs))
        if (evidence, proofs) == (self.evidence, self.proofs):
            return self
        update = {"evidence": evidence, "proofs": proofs, "findings": "", "web": ""}
        return self.model_copy(update=update)


async def collect(
    journal: Journal, delegation_step: int, evidence: Evidence, services: SubagentServices
) -> Collected:
    """Merge the results of the sub-agents that a step started into the evidence, and release their slots.

    Args:
        evidence: the main agent's own evidence.
    """
    delegation = await find_delegation(journal, delegation_step)
    if delegation is None:
        return Collected(evidence=evidence)
    children = await children_of(journal, [delegation])
    words = subagent_words(delegation.language)
    now = datetime.now(UTC)
    ended = [(child, final_status(child, now)) for child in children]
    settling = run_in_background(
        settle(
            services.settings,
            services.subagent_control,
            [SubagentEnd(child_id=child.task.child_id, status=status) for child, status in ended],
        )
    )
    await wait_briefly(settling)
    states = [child.state for child in children]
    targets = tuple(dict.fromkeys(doc_id for task in delegation.tasks for doc_id in task.doc_ids))
    is_listing = bool(evidence.records) and not evidence.hits
    return Collected(
        evidence=merge_evidence(evidence, states, targets, _bounds(evidence, services)),
        proofs=tuple(in_turns([list(_proved(states))])),
        findings="" if is_listing else findings_xml(states),
        views=tuple(view_of(delegation, child, status) for child, status in ended),
        warnings=_warnings(delegation, ended, words),
        web=web_section(states, words),
    )


def call_result(collected: Collected, shown_ids: Collection[str]) -> str:
    """Return the result of a `delegate` call for the model: findings, passages that it hasn't seen, and
    warnings.

    Args:
        shown_ids: ids of the blocks that the model has already seen.
    """
    fresh = [hit for hit in collected.evidence.hits if hit.block_id not in shown_ids]
    records = {record.doc_id: record for record in collected.evidence.records}
    passages = documents_with_blocks(fresh, records) if fresh else ""
    warning_lines = "\n".join(collected.warnings)
    return (
        "\n".join(filter(None, (collected.findings, passages, warning_lines)))
        or "The sub-agent found nothing."
    )


def _bounds(own: Evidence, services: SubagentServices) -> Bounds:
    """Return limits for the merged evidence, which always has room for the main agent's evidence."""
    settings = services.settings
    return Bounds(
        passages=max(2 * settings.answering.answer_blocks, len(own.hits)),
        tokens=max(int(settings.subagents.reserve_tokens * _EVIDENCE_SHARE), estimated_tokens(own.hits)),
    )


def _warnings(
    delegation: Delegation, ended: Sequence[tuple[Child, ChildStatus]], words: SubagentWords
) -> tuple[str, ...]:
    warnings = [warning_of(words, child.state, status) for child, status in ended]
    if not any(child.state.findings or child.state.hits for child, _ in ended):
        warnings.append(words.fallbacks[delegation.decided.fallback_plan])
    return tuple(warning for warning in warnings if warning)


def merge_evidence(
    own: Evidence, states: Sequence[SubagentState], targets: Sequence[str], bounds: Bounds
) -> Evidence:
    """Merge the evidence of the main agent and its sub-agents within the limits. Proofs of findings have
    priority.

    A listing without passages is returned unchanged.
    """
    if own.records and not own.hits:
        return own
    proved = in_turns(by_document(_proved(states)))
    hits_of_children = in_turns(by_document(hit for state in states for hit in state.hits))
    candidates = in_turns([[*proved, *own.hits, *hits_of_children]])
    of_targets = [[hit for hit in candidates if hit.doc_id == target] for target in targets]
    first = in_turns(of_one[:_FEWEST_OF_EACH] for of_one in of_targets)
    kept_ids = _within(in_turns([[*first, *candidates]]), bounds)
    # Keep the candidates' order, so that proofs come first in the prompt and passages added for balance don't
    # displace them.
    ordered = [hit for hit in candidates if hit.block_id in kept_ids]
    occurring = {hit.doc_id for hit in ordered}
    # Metadata alone may prove a finding, so keep the records of all cited documents.
    occurring |= {proof.doc_id for state in states for finding in state.findings for proof in finding.proofs}
    records = {record.doc_id: record for state in states for record in state.records}
    records |= {record.doc_id: record for record in own.records}
    return own.model_copy(
        update={
            "hits": tuple(ordered),
            "records": tuple(record for record in records.values() if record.doc_id in occurring),
        }
    )


def estimated_tokens(hits: Iterable[Hit]) -> int:
    """Estimate the number of tokens in the text of the hits."""
    return int(sum(len(hit.content or hit.image_caption or "") for hit in hits) / CHARS_PER_TOKEN)


def _proved(states: Sequence[SubagentState]) -> Iterator[Hit]:
    """Yield the hits that contain the proofs of findings, in the order of the findings. A hit may occur
    several times.
    """
    hits_by_id = {hit.block_id: hit for state in states for hit in state.hits}
    for state in states:
        for finding in state.findings:
            for proof in finding.proofs:
                if proof.block_id in hits_by_id:
                    yield hits_by_id[proof.block_id]


def _within(hits: Iterable[Hit], bounds: Bounds) -> set[str]:
    """Return the block ids of the hits that fit the limits. A hit that is too long is skipped in favour of
    shorter ones after it.
    """
    chosen: set[str] = set()
    tokens = 0
    for hit in hits:
        more = estimated_tokens([hit])
        if len(chosen) < bounds.passages and (not chosen or tokens + more <= bounds.tokens):
            chosen.add(hit.block_id)
            tokens += more
    return chosen
