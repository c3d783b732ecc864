"""The four kinds of sub-agents as data (contracts.md, section 4): when, with which tools, for what. Pure."""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from shared.runs.models import ProfileName, SubagentTool
from shared.subagents.models import ComparatorReport, DocReaderReport, EvidenceReport, WebReport
from shared.subagents.policy_models import ArtifactName

StopCriterion = Literal[
    "evidence_covered",
    "max_turns",
    "dimensions_addressed",
    "claims_backed_or_marked",
    "corroborated",
    "time_out",
]


@dataclass(frozen=True)
class Profile:
    """One kind of sub-agent.

    Attributes:
        purpose: what it is for, in words for people.
        tools: all that it may ever use.
        required_tools: those without which it makes no sense.
        artifacts: what it hands back, piece by piece.
        stops_when: any of these ends it; its budget does in any case.
        smaller: the profile that takes its place when it is not at hand or fails; None = there is none.
        report: what it fills in; made of the kinds of items that `core.subagent_findings` reads.
        reads_through: it begins with passages from everywhere in its documents, not with the nearest alone.
    """

    name: ProfileName
    purpose: str
    tools: tuple[SubagentTool, ...]
    required_tools: tuple[SubagentTool, ...]
    artifacts: tuple[ArtifactName, ...]
    stops_when: tuple[StopCriterion, ...]
    smaller: ProfileName | None
    report: type[BaseModel]
    reads_through: bool = False


_CORPUS: tuple[SubagentTool, ...] = ("retrieve_documents", "query_metadata")

PROFILES: dict[ProfileName, Profile] = {
    "doc_reader": Profile(
        name="doc_reader",
        purpose="reads one document in depth",
        tools=_CORPUS,
        required_tools=("retrieve_documents",),
        artifacts=("section_summary", "claims", "citations", "uncertainty"),
        stops_when=("evidence_covered", "max_turns"),
        smaller=None,
        report=DocReaderReport,
        reads_through=True,
    ),
    "comparator": Profile(
        name="comparator",
        purpose="sets several documents side by side",
        tools=_CORPUS,
        required_tools=("retrieve_documents",),
        artifacts=("similarities", "differences", "conflicts", "citation_matrix"),
        stops_when=("dimensions_addressed",),
        smaller="doc_reader",
        report=ComparatorReport,
    ),
    "evidence_builder": Profile(
        name="evidence_builder",
        purpose="finds the proof of each statement",
        tools=_CORPUS,
        required_tools=("retrieve_documents",),
        artifacts=("claim_sources", "claim_confidence"),
        stops_when=("claims_backed_or_marked",),
        smaller="doc_reader",
        report=EvidenceReport,
    ),
    "web_verifier": Profile(
        name="web_verifier",
        purpose="looks on the web for what the documents do not hold",
        tools=("web_search", "retrieve_documents"),
        required_tools=("web_search", "retrieve_documents"),
        artifacts=("corroborated_claims", "external_citations", "trust_notes"),
        stops_when=("corroborated", "time_out"),
        smaller="evidence_builder",
        report=WebReport,
    ),
}
