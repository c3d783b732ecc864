"""Profiles of all agents, and the schemas of the reports that sub-agents write
(docs/internals/delegation.md). Pure.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from pydantic import BaseModel

from shared.answering.policy_models import ArtifactName
from shared.platform.models import Model
from shared.runs.agents import AgentDefinition
from shared.runs.models import ProfileName, SubagentTool


class Proof(Model):
    """A verbatim quotation from a passage of the document `doc_id`."""

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
    """Report of doc_reader. `uncertainty` lists what the passages leave open, one sentence each."""

    sections: tuple[SectionSummary, ...]
    claims: tuple[Claim, ...]
    uncertainty: tuple[str, ...]


class Side(Model):
    """What one document says on a dimension, with an empty quote if it says nothing."""

    doc_id: str
    statement: str
    quote: str


class Contrast(Model):
    """One dimension of a comparison, with what each document says on it."""

    dimension: str
    sides: tuple[Side, ...]


class ComparatorReport(Model):
    """Report of comparator. `open_dimensions` were asked for but not found in the documents."""

    similarities: tuple[Claim, ...]
    differences: tuple[Contrast, ...]
    conflicts: tuple[Contrast, ...]
    open_dimensions: tuple[str, ...]


class BackedClaim(Model):
    """A statement with the quotations that support it; none if it is unsupported. `confidence` is between 0
    and 1.
    """

    text: str
    confidence: float
    proofs: tuple[Proof, ...]


class EvidenceReport(Model):
    """Report of evidence_builder: each major claim with its proofs, or without any if it is unsupported."""

    claims: tuple[BackedClaim, ...]


class WebSource(Model):
    """A web page, with a quotation from its text."""

    url: str
    title: str
    quote: str


class WebClaim(Model):
    """A statement with the web pages that support it. It counts as corroborated if they belong to at least
    two sites.
    """

    text: str
    sources: tuple[WebSource, ...]


class WebReport(Model):
    """Report of web_verifier. `trust_notes` say how far its sources can be trusted, one sentence each."""

    claims: tuple[WebClaim, ...]
    trust_notes: tuple[str, ...]


@dataclass(frozen=True)
class CallRules:
    """Limits on the tool calls of an agent.

    Attributes:
        in_all: maximum number of calls; None = set by the settings.
        per_turn: maximum number of calls in one turn.
        max_argument_chars: calls with longer arguments are dropped, as are those beyond `per_turn`;
            None = no length limit, and calls beyond `per_turn` are refused.
        sends_refusals_with_results: whether readers see a refusal with the results of the turn's other calls,
            not when the call is planned.
        shows_web_text: whether the model sees the text of web pages instead of a tool's JSON.
    """

    in_all: int | None
    per_turn: int
    max_argument_chars: int | None = None
    sends_refusals_with_results: bool = True
    shows_web_text: bool = False


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Static configuration of one kind of agent: its prompts, its limits on tool calls and its kind of
    output.

    Attributes:
        prompts: names of the templates in `prompts/` that form its system message, in order.
        calls: limits on its tool calls.
        report: schema of its output, built from the models of this module; None = its output is an
            answer, streamed and proved.
    """

    name: str
    prompts: tuple[str, ...]
    calls: CallRules
    report: type[BaseModel] | None = None


_SUBAGENT_CALLS = CallRules(
    in_all=None,
    per_turn=3,  # as stated in the prompt
    # Longer arguments aren't search queries, and every later turn would read them again.
    max_argument_chars=2_000,
    sends_refusals_with_results=False,
    shows_web_text=True,
)


@dataclass(frozen=True, kw_only=True)
class SubagentProfile(Profile):
    """Static configuration of one kind of sub-agent: its tools, its report and its replacement.

    Attributes:
        tools: all tools that it may ever use.
        required_tools: tools without which it is not started.
        artifacts: parts of its result.
        smaller: the profile that replaces it if it is unavailable or fails; None = none.
        reads_through: whether it starts with passages from all parts of its documents, not only the nearest.
    """

    name: ProfileName
    tools: tuple[SubagentTool, ...]
    required_tools: tuple[SubagentTool, ...]
    artifacts: tuple[ArtifactName, ...]
    smaller: ProfileName | None
    report: type[BaseModel]
    calls: CallRules = _SUBAGENT_CALLS
    reads_through: bool = False


# The limits on calls are unmeasured.
MAIN_AGENT = Profile(name="main", prompts=("answer",), calls=CallRules(in_all=16, per_turn=6))


def main_profile(agent: AgentDefinition | None) -> Profile:
    """Return the profile of the agent that answers the question: `agent`, or the default agent if it is
    None.
    """
    if agent is None:
        return MAIN_AGENT
    prompts = ("agent_unproved",) if agent.proof == "optional" else ("answer", "agent")
    in_all = MAIN_AGENT.calls.in_all if agent.limits.calls is None else agent.limits.calls
    return Profile(name=agent.name, prompts=prompts, calls=replace(MAIN_AGENT.calls, in_all=in_all))


SCOPES: Mapping[SubagentTool, tuple[str, ...]] = {
    "retrieve_documents": ("rag_semantic_search", "read_pages"),
    "query_metadata": ("rag_metadata_search", "rag_get_document"),
    "web_search": ("web_search", "web_fetch"),
}
"""The registry's tools for each of a sub-agent's tool scopes."""

_CORPUS: tuple[SubagentTool, ...] = ("retrieve_documents", "query_metadata")

PROFILES: dict[ProfileName, SubagentProfile] = {
    "doc_reader": SubagentProfile(
        name="doc_reader",
        prompts=("doc_reader",),
        tools=_CORPUS,
        required_tools=("retrieve_documents",),
        artifacts=("section_summary", "claims", "citations", "uncertainty"),
        smaller=None,
        report=DocReaderReport,
        reads_through=True,
    ),
    "comparator": SubagentProfile(
        name="comparator",
        prompts=("comparator",),
        tools=_CORPUS,
        required_tools=("retrieve_documents",),
        artifacts=("similarities", "differences", "conflicts", "citation_matrix"),
        smaller="doc_reader",
        report=ComparatorReport,
    ),
    "evidence_builder": SubagentProfile(
        name="evidence_builder",
        prompts=("evidence_builder",),
        tools=_CORPUS,
        required_tools=("retrieve_documents",),
        artifacts=("claim_sources", "claim_confidence"),
        smaller="doc_reader",
        report=EvidenceReport,
    ),
    "web_verifier": SubagentProfile(
        name="web_verifier",
        prompts=("web_verifier",),
        tools=("web_search", "retrieve_documents"),
        required_tools=("web_search", "retrieve_documents"),
        artifacts=("corroborated_claims", "external_citations", "trust_notes"),
        smaller="evidence_builder",
        report=WebReport,
    ),
}


def installed_profiles(*, has_web_search: bool) -> tuple[ProfileName, ...]:
    """Return the names of all available profiles. Without web search, `web_verifier` is not available."""
    return tuple(name for name in PROFILES if name != "web_verifier" or has_web_search)


def profiles_for(
    name: ProfileName, tools: Collection[SubagentTool], *, has_web_search: bool
) -> tuple[ProfileName, ...]:
    """Return the names of a task's profile and of its available replacements, best first. A replacement's
    required tools must be among `tools`.
    """
    installed = installed_profiles(has_web_search=has_web_search)
    return tuple(
        profile.name
        for profile in with_smaller(name)
        if profile.name == name or (profile.name in installed and set(profile.required_tools) <= set(tools))
    )


def with_smaller(name: ProfileName | None) -> Iterator[SubagentProfile]:
    """Yield a profile, then its replacements, each simpler than the one before."""
    while name is not None:
        yield PROFILES[name]
        name = PROFILES[name].smaller
