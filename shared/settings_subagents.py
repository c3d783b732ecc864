"""Settings of sub-agents and of the policy that decides on them (contracts.md, section 4): for `Settings`.

Names and defaults are the contract's; what it leaves open is marked with its reason.
"""

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from shared.settings_base import EnvironmentModel

_TOOLS = ("retrieve_documents", "query_metadata", "web_search")


class SubagentSettings(EnvironmentModel):
    """Limits, budgets and thresholds of sub-agents."""

    subagents_enabled: bool = Field(
        default=True, description="Questions that need deeper work may get sub-agents."
    )
    subagents_max_per_request: int = Field(
        default=2, ge=0, le=10, description="Most sub-agents that one question may get."
    )
    subagents_max_recursion_depth: int = Field(
        default=1, ge=0, le=3, description="1 = sub-agents start no others; 0 = there are none."
    )
    subagents_child_timeout_ms: int = Field(
        default=15_000, gt=0, le=600_000, description="Most milliseconds for one sub-agent."
    )
    subagents_child_max_turns: int = Field(
        default=3, ge=1, le=20, description="Most turns of the model in one sub-agent."
    )
    subagents_child_retry_count: int = Field(
        default=1, ge=0, le=3, description="How often a sub-agent that failed is tried again."
    )
    subagents_child_retry_backoff_ms: int = Field(
        default=750,
        ge=0,
        le=60_000,
        description="Milliseconds before it is, and before a deferred decision is made anew.",
    )
    subagents_child_min_latency_ms: int = Field(
        default=4_000,  # unmeasured: one search and one short turn of a model
        ge=1,
        description="With fewer milliseconds no sub-agent is started.",
    )
    subagents_reserve_latency_ms: int = Field(
        default=5_000,  # unmeasured: an answer of usual length
        ge=0,
        description="Milliseconds kept back for the main agent, which writes the answer.",
    )
    subagents_reserve_tokens: int = Field(
        default=6_000,  # ten blocks of 230 tokens, and MAX_ANSWER_TOKENS less hidden reasoning
        ge=0,
        description="Tokens kept back for the main agent, which writes the answer.",
    )
    subagents_max_active: int = Field(
        default=20,  # unmeasured: ten questions with two each
        ge=0,
        description="Most sub-agents at work at once, of all questions and instances together.",
    )
    subagents_max_queue_depth: int = Field(
        default=20,  # unmeasured: as many as may be at work
        ge=1,
        description="With so many sub-agents waiting, decisions to start one are deferred.",
    )
    subagents_restricted_tools_only: bool = Field(
        default=False, description="Sub-agents may use the tools of SUBAGENTS_RESTRICTED_TOOLS and no others."
    )
    subagents_restricted_tools: str = Field(
        default="retrieve_documents,query_metadata",
        description="Those tools, comma separated; of retrieve_documents, query_metadata, web_search.",
    )
    subagents_compliance_mode: Literal["normal", "strict"] = Field(
        default="normal", description="strict = the restricted tools only, and never the web."
    )
    subagents_sensitive_departments: str = Field(
        default="",
        description="Departments, comma separated: nothing is looked up on the web for questions that their "
        "documents were found for.",
        examples=["Human Resources,Legal"],
    )
    subagents_degraded_mode: bool = Field(
        default=False, description="Reduced operation: no sub-agents until it is over."
    )

    circuit_breaker_failure_rate_threshold: float = Field(
        default=0.35, gt=0, le=1, description="Share of sub-agents that failed from which on they are paused."
    )
    circuit_breaker_window_requests: int = Field(
        default=50, ge=1, le=1000, description="The newest so many sub-agents are looked at for it."
    )
    circuit_breaker_cooldown_seconds: int = Field(
        default=300, ge=1, description="Seconds of the pause, until one is tried."
    )

    low_retrieval_confidence_top_score: float = Field(
        default=0.62, ge=0, le=1, description="A best score below it calls for a sub-agent."
    )
    high_confidence_no_delegate_top_score: float = Field(
        default=0.78,
        ge=0,
        le=1,
        description="From this best score on, clearly ahead, a fact needs no sub-agent.",
    )
    low_score_spread_ambiguity: float = Field(
        default=0.08,
        ge=0,
        le=1,
        description="Six passages or more whose best is less ahead than this call for a sub-agent.",
    )
    high_score_spread_clarity: float = Field(
        default=0.15, ge=0, le=1, description="From here on the best passage is clearly ahead."
    )

    max_total_tokens_per_request: int = Field(
        default=24_000, gt=0, description="Most tokens of one question, sub-agents included."
    )
    max_child_tokens: int = Field(default=8_000, gt=0, description="Most tokens of one sub-agent.")
    max_subagent_cost_usd: float = Field(
        default=0.08, ge=0, description="Most US dollars for all sub-agents of one question."
    )
    max_child_cost_usd: float = Field(default=0.03, gt=0, description="Most US dollars for one sub-agent.")
    chat_model_input_usd_per_million_tokens: float = Field(
        default=0.40,  # list price of gpt-4.1-mini, for which the prompts are written
        ge=0,
        description="What CHAT_MODEL costs for a million tokens that it reads, in US dollars; sub-agents are "
        "held to their budget by it.",
    )
    chat_model_output_usd_per_million_tokens: float = Field(
        default=1.60,  # as above
        ge=0,
        description="The same for a million tokens that it writes.",
    )
    max_total_latency_ms: int = Field(
        default=25_000,
        gt=0,
        description="Most milliseconds for one question, from its arrival to its stored answer; longer "
        "limits of its steps are cut by it.",
    )
    min_remaining_latency_to_delegate_ms: int = Field(
        default=12_000, ge=0, description="With fewer milliseconds left no sub-agent is started."
    )
    min_remaining_tokens_to_delegate: int = Field(
        default=8_000,  # unmeasured: the reserve, and one turn over some passages
        ge=0,
        description="With fewer tokens left no sub-agent is started.",
    )
    min_remaining_cost_to_delegate_usd: float = Field(
        default=0.005,  # unmeasured: one turn of a small model
        ge=0,
        description="With fewer US dollars left no sub-agent is started.",
    )

    @property
    def restricted_subagent_tools(self) -> tuple[str, ...]:
        """SUBAGENTS_RESTRICTED_TOOLS, one by one."""
        return _names(self.subagents_restricted_tools)

    @property
    def sensitive_departments(self) -> tuple[str, ...]:
        """SUBAGENTS_SENSITIVE_DEPARTMENTS, one by one, in lower case."""
        return tuple(name.casefold() for name in _names(self.subagents_sensitive_departments))

    @model_validator(mode="after")
    def _check_subagents(self) -> Self:
        for lower, upper in _ordered():
            if getattr(self, lower) >= getattr(self, upper):
                raise ValueError(
                    f"{lower.upper()} ({getattr(self, lower)}) must be less than {upper.upper()} "
                    f"({getattr(self, upper)})."
                )
        unknown = [name for name in self.restricted_subagent_tools if name not in _TOOLS]
        if unknown:
            raise ValueError(
                f"SUBAGENTS_RESTRICTED_TOOLS names no tool of a sub-agent: {', '.join(unknown)}. "
                "Example: SUBAGENTS_RESTRICTED_TOOLS=retrieve_documents,query_metadata"
            )
        return self


def _ordered() -> Iterator[tuple[str, str]]:
    """Pairs of settings of which the first must be less."""
    yield "low_retrieval_confidence_top_score", "high_confidence_no_delegate_top_score"
    yield "low_score_spread_ambiguity", "high_score_spread_clarity"
    yield "subagents_reserve_tokens", "min_remaining_tokens_to_delegate"
    yield "subagents_reserve_latency_ms", "min_remaining_latency_to_delegate_ms"
    yield "subagents_reserve_latency_ms", "max_total_latency_ms"


def _names(listed: str) -> tuple[str, ...]:
    return tuple(name for part in listed.split(",") if (name := part.strip()))
