"""The four sub-agent profiles (docs/internals/delegation.md) and the schemas of their reports. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from pydantic import BaseModel

from shared.answering.policy_models import ArtifactName
from shared.platform.models import Model
from shared.runs.models import ProfileName, SubagentTool


class Proof(Model):
    """A quotation, word by word, from a passage of the document `doc_id`."""

    doc_id: str
    quote: str


class Claim(Model):
    """One statement with its proofs."""

    text: str
    proofs: tuple[Proof, ...]


class SectionSummary(Model):
    """What one part of a document says."""

    heading: str
    summary: str


class DocReaderReport(Model):
    """Of doc_reader. `uncertainty`: what the passages leave open, a sentence each."""

    sections: tuple[SectionSummary, ...]
    claims: tuple[Claim, ...]
    uncertainty: tuple[str, ...]


class Side(Model):
    """What one document says on a dimension; no quote when it says nothing of it."""

    doc_id: str
    statement: str
    quote: str


class Contrast(Model):
    """One dimension with what each document says on it."""

    dimension: str
    sides: tuple[Side, ...]


class ComparatorReport(Model):
    """Of comparator. `open_dimensions`: asked for, and not found in the documents."""

    similarities: tuple[Claim, ...]
    differences: tuple[Contrast, ...]
    conflicts: tuple[Contrast, ...]
    open_dimensions: tuple[str, ...]


class BackedClaim(Model):
    """A statement with its proofs; none means that it is unsupported. `confidence`: from 0 to 1."""

    text: str
    confidence: float
    proofs: tuple[Proof, ...]


class EvidenceReport(Model):
    """Of evidence_builder: each major claim, backed or marked unsupported."""

    claims: tuple[BackedClaim, ...]


class WebSource(Model):
    """A page of the web, with a quotation from what was found there."""

    url: str
    title: str
    quote: str


class WebClaim(Model):
    """A statement and the pages that say it; corroborated when two sites or more do."""

    text: str
    sources: tuple[WebSource, ...]


class WebReport(Model):
    """Of web_verifier. `trust_notes`: how far its sources can be trusted, a sentence each."""

    claims: tuple[WebClaim, ...]
    trust_notes: tuple[str, ...]


@dataclass(frozen=True)
class CallRules:
    """Limits on the tool calls of an agent's turns.

    Attributes:
        per_turn: maximum number of calls.
        max_argument_chars: calls with longer arguments are dropped, as are those beyond `per_turn`;
            None = no length limit, and calls beyond `per_turn` are refused.
        tells_refused_with_results: whether readers see a refusal with the results of the turn's other calls,
            not when the call is planned.
        shows_web_text: whether the model sees the text of web pages instead of a tool's JSON.
    """

    per_turn: int
    max_argument_chars: int | None = None
    tells_refused_with_results: bool = True
    shows_web_text: bool = False


MAIN_CALLS = CallRules(per_turn=6)  # unmeasured
SUBAGENT_CALLS = CallRules(
    per_turn=3,  # as stated in the prompt
    # Longer arguments aren't search queries, and every later turn would read them again.
    max_argument_chars=2_000,
    tells_refused_with_results=False,
    shows_web_text=True,
)


@dataclass(frozen=True)
class Profile:
    """One kind of sub-agent.

    Attributes:
        tools: all tools that it may ever use.
        required_tools: tools without which it is not started.
        artifacts: parts of its result.
        smaller: the profile that replaces it if it is unavailable or fails; None = none.
        report: schema of its report, made of the item types that `findings` reads.
        reads_through: whether it starts with passages from all parts of its documents, not only the nearest.
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
"""The registry's tools for each of a sub-agent's tool scopes."""

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


def installed_profiles(*, has_web_search: bool) -> tuple[ProfileName, ...]:
    """Return the available profiles: all, except `web_verifier` if no web search is configured."""
    return tuple(name for name in PROFILES if name != "web_verifier" or has_web_search)


def profiles_for(
    name: ProfileName, tools: Collection[SubagentTool], *, has_web_search: bool
) -> tuple[ProfileName, ...]:
    """Return a task's profile, then the available smaller ones whose required tools the task has."""
    installed = installed_profiles(has_web_search=has_web_search)
    return tuple(
        profile.name
        for profile in with_smaller(name)
        if profile.name == name or (profile.name in installed and set(profile.required_tools) <= set(tools))
    )


def with_smaller(name: ProfileName | None) -> Iterator[Profile]:
    """Yield a profile, then its successive replacements."""
    while name is not None:
        yield PROFILES[name]
        name = PROFILES[name].smaller
