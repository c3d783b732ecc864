"""The four kinds of sub-agents as data (contracts.md, section 4): when, with which tools, for what. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import BaseModel

from shared.runs.models import ProfileName, SubagentTool
from shared.subagents.models import ComparatorReport, DocReaderReport, EvidenceReport, WebReport
from shared.subagents.policy_models import ArtifactName


@dataclass(frozen=True)
class Profile:
    """One kind of sub-agent.

    Attributes:
        tools: all that it may ever use.
        required_tools: those without which it makes no sense.
        artifacts: what it hands back, piece by piece.
        smaller: the profile that takes its place when it is not at hand or fails; None = there is none.
        report: what it fills in; made of the kinds of items that `findings` reads.
        reads_through: it begins with passages from everywhere in its documents, not with the nearest alone.
    """

    name: ProfileName
    tools: tuple[SubagentTool, ...]
    required_tools: tuple[SubagentTool, ...]
    artifacts: tuple[ArtifactName, ...]
    smaller: ProfileName | None
    report: type[BaseModel]
    reads_through: bool = False


SCOPES: Mapping[SubagentTool, tuple[str, ...]] = {
    "retrieve_documents": ("rag_semantic_search", "read_pages"),
    "query_metadata": ("rag_metadata_search", "rag_get_document"),
    "web_search": ("web_search", "web_fetch"),
}
"""What a sub-agent may do, as tools of the registry."""

_CORPUS: tuple[SubagentTool, ...] = ("retrieve_documents", "query_metadata")

PROFILES: dict[ProfileName, Profile] = {
    "doc_reader": Profile(
        name="doc_reader",
        tools=_CORPUS,
        required_tools=("retrieve_documents",),
        artifacts=("section_summary", "claims", "citations", "uncertainty"),
        smaller=None,
        report=DocReaderReport,
        reads_through=True,
    ),
    "comparator": Profile(
        name="comparator",
        tools=_CORPUS,
        required_tools=("retrieve_documents",),
        artifacts=("similarities", "differences", "conflicts", "citation_matrix"),
        smaller="doc_reader",
        report=ComparatorReport,
    ),
    "evidence_builder": Profile(
        name="evidence_builder",
        tools=_CORPUS,
        required_tools=("retrieve_documents",),
        artifacts=("claim_sources", "claim_confidence"),
        smaller="doc_reader",
        report=EvidenceReport,
    ),
    "web_verifier": Profile(
        name="web_verifier",
        tools=("web_search", "retrieve_documents"),
        required_tools=("web_search", "retrieve_documents"),
        artifacts=("corroborated_claims", "external_citations", "trust_notes"),
        smaller="evidence_builder",
        report=WebReport,
    ),
}


def with_smaller(name: ProfileName | None) -> Iterator[Profile]:
    """A profile, then those that take its place, in order."""
    while name is not None:
        yield PROFILES[name]
        name = PROFILES[name].smaller
