"""Which profile takes a question on, and with which tools. Pure.

The intent chooses; a profile that is not installed, or whose tools are not allowed or do not work, gives way
to the smaller one. No profile gives way to the web, and it is not chosen where it is not allowed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from shared.core.profiles import PROFILES, Profile
from shared.models.delegation import (
    DelegationPolicyInput,
    DelegationRules,
    GateCode,
    NoteCode,
    ProfileName,
    SubagentFacts,
    SubagentTool,
)
from shared.models.plan import QueryIntent

_BY_INTENT: dict[QueryIntent, ProfileName] = {
    "doc_summary": "doc_reader",
    "compare_docs": "comparator",
    "evidence_trace": "evidence_builder",
}


@dataclass(frozen=True)
class Selection:
    """A profile with the tools that it gets, or the gate that keeps all of them out.

    Attributes:
        has_smaller: another profile could take over from it.
        notes: that it is not the profile, or not all the tools, that the question would have had.
    """

    profile: Profile | None
    tools: tuple[SubagentTool, ...] = ()
    has_smaller: bool = False
    notes: tuple[NoteCode, ...] = ()
    gate: GateCode | None = None


def select_profile(
    policy_input: DelegationPolicyInput, facts: SubagentFacts, rules: DelegationRules
) -> Selection:
    """The profile for a question, or why there is none."""
    allowed = _allowed_tools(policy_input, facts, rules)
    suited = list(_from_best_suited(_best_suited(policy_input, facts, rules, allowed)))
    installed = [profile for profile in suited if profile.name in facts.installed_profiles]
    permitted = [profile for profile in installed if allowed.issuperset(profile.required_tools)]
    working = [
        profile for profile in permitted if set(facts.healthy_tools).issuperset(profile.required_tools)
    ]
    if not installed:
        return Selection(None, gate="SUBAGENTS_UNAVAILABLE")
    if not permitted:
        return Selection(None, gate="REQUIRED_TOOLS_RESTRICTED")
    if not working:
        return Selection(None, gate="REQUIRED_TOOLS_UNHEALTHY")
    chosen = working[0]
    notes: list[NoteCode] = []
    if chosen is not suited[0]:
        notes.append("PROFILE_REDUCED")
    tools = tuple(tool for tool in chosen.tools if tool in allowed and tool in facts.healthy_tools)
    if len(tools) < len(chosen.tools):
        notes.append("TOOLS_RESTRICTED")
    return Selection(chosen, tools, has_smaller=len(working) > 1, notes=tuple(notes))


def _best_suited(
    policy_input: DelegationPolicyInput,
    facts: SubagentFacts,
    rules: DelegationRules,
    allowed: frozenset[SubagentTool],
) -> ProfileName:
    scope = policy_input.doc_scope
    by_intent = _BY_INTENT.get(policy_input.query_intent)
    if by_intent is not None:
        return by_intent
    if scope.multi_document:
        return "comparator"
    if scope.requires_full_document:
        return "doc_reader"
    # A question about given documents is not answered by the web.
    is_insufficient = policy_input.retrieval_stats.top_score < rules.low_top_score
    has_web = "web_search" in allowed and "web_search" in facts.healthy_tools
    if is_insufficient and has_web and not scope.target_doc_ids:
        return "web_verifier"
    return "evidence_builder"


def _from_best_suited(name: ProfileName | None) -> Iterator[Profile]:
    while name is not None:
        yield PROFILES[name]
        name = PROFILES[name].smaller


def _allowed_tools(
    policy_input: DelegationPolicyInput, facts: SubagentFacts, rules: DelegationRules
) -> frozenset[SubagentTool]:
    risk = policy_input.risk_flags
    allowed = {tool for profile in PROFILES.values() for tool in profile.tools}
    is_strict = risk.compliance_mode == "strict"
    if risk.restricted_tools_only or is_strict:
        allowed &= set(rules.restricted_tools)
    # A search on the web tells others what is asked here.
    if not facts.web_allowed or risk.sensitive_domain or is_strict:
        allowed.discard("web_search")
    return frozenset(allowed)
