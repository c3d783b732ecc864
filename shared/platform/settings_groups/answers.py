"""Settings of questions, conversations and summaries, and their budgets."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from shared.platform.settings_groups.base import SettingsGroup, constant, model_timeout, prefixed
from shared.platform.settings_groups.values import HeaderName, HeaderValue, SafeUrl, TimezoneName, listed


class AnsweringSettings(SettingsGroup):
    """Answers. Limits of planning, retrieval and answering, and the context of prompts."""

    plan_timeout_s: float = model_timeout(10)  # an estimate, not measured
    retrieval_timeout_s: float = constant(60)  # twice the timeout of one search
    web_consent: Literal["ask", "allow", "deny"] = Field(
        default="ask",
        description=(
            "Whether questions may use the web: `ask` = ask once per conversation; `allow` or `deny` "
            "= don't ask."
        ),
    )
    clarification_timeout_s: float = constant(3 * 86400)  # enough for a weekend and one more day
    max_retrieval_attempts: int = constant(2)  # the first search, and a second one to fill gaps
    max_agent_turns: int = constant(6)  # an estimate, not measured
    # Enough for MAX_ANSWER_TOKENS at 50 tokens per second.
    answer_timeout_s: float = model_timeout(90)
    repair_timeout_s: float = model_timeout(10)  # an estimate, not measured
    judge_timeout_s: float = model_timeout(15)  # an estimate, not measured
    max_answer_tokens: int = Field(
        default=4000,  # An answer has about 600 tokens, but hidden reasoning counts too.
        gt=0,
        description="Maximum length of an answer in tokens, including reasoning.",
    )
    answer_blocks: int = constant(10)  # docs/performance.md explains this value
    whole_documents_tokens: int = constant(10_000)  # total of a prompt; fact lookups may use a quarter of it
    prompt_figures: int = Field(
        default=3,
        ge=0,
        le=3,
        description=(
            "Maximum number of figures per prompt (1,000 tokens each); 0 also disables `view_figure`."
        ),
    )
    organisation: str = Field(
        default="an organisation",
        min_length=1,
        max_length=100,
        description="Name of your organisation, as used in prompts.",
        examples=["Contoso Ltd"],
    )
    default_timezone: TimezoneName = Field(
        default="UTC",
        description='Default time zone of questions, for "today".',
        examples=["Europe/Berlin"],
    )
    agents_folder: str = Field(
        default="agents",
        description="Folder with agent files (`NAME.agent.md`), absolute or relative to the app folder.",
        examples=["samples/agents"],
    )
    agent_tools: str = Field(
        default="",
        description="[Optional tools](extend.md#the-tools) to enable, comma separated.",
        examples=["python,file_read,file_write"],
    )
    max_question_chars: int = constant(8000)  # about four pages; longer texts should be uploaded as documents

    @property
    def enabled_tools(self) -> tuple[str, ...]:
        """Names of the tools in AGENT_TOOLS, without duplicates."""
        return tuple(dict.fromkeys(listed(self.agent_tools)))


class ConversationSettings(SettingsGroup):
    """Threads and runs. Retention, sharing and the length of a conversation's history."""

    turns: int = constant(6, alias="CONVERSATION_TURNS")  # older turns are summarised; unmeasured
    turn_summary_timeout_s: float = model_timeout(60)  # unmeasured; turns are summarised in the background
    sharing: bool = Field(
        default=False,
        description="Whether users may share answers and open shared ones.",
    )
    run_retention_days: int = Field(
        default=30,
        ge=1,
        description=(
            "Retention of journals and document summaries in days. Answers are kept with their thread."
        ),
    )
    conversation_file_days: int = Field(
        default=30,
        ge=1,
        description="Days after the last question before a thread's files are deleted. Answers are kept.",
    )


class SummarySettings(SettingsGroup, alias_generator=prefixed("SUMMARY_")):
    """Summaries. Limits of document summaries, which read a document window by window."""

    timeout_s: float = constant(900)  # afterwards, the summary covers only the windows that have been read
    call_timeout_s: float = model_timeout(60)  # enough for 4,000 tokens at 70 tokens per second
    # Smaller windows find more details but need more model calls. Unmeasured.
    window_tokens: int = constant(3000)
    max_windows: int = constant(120)  # limit per document, which allows 360,000 tokens or about 700 pages
    max_tokens: int = Field(
        default=2_000_000,  # enough for 235 windows, i.e. 20 documents of about 50 pages
        ge=20_000,
        description=(
            "Maximum number of tokens per summary, divided equally among its documents. Longer "
            "documents are summarised in part."
        ),
    )
    documents_at_once: int = constant(4)  # unmeasured; a low number leaves model capacity for other users
    # Includes hidden reasoning, like MAX_ANSWER_TOKENS.
    output_tokens: int = constant(4000)


SUBAGENT_TOOLS = ("retrieve_documents", "query_metadata", "web_search")


class SubagentSettings(SettingsGroup, alias_generator=prefixed("SUBAGENTS_")):
    """Limits of sub-agents. How many may run, how long, and with which tools."""

    enabled: bool = Field(default=True, description="Whether questions may be delegated to sub-agents.")
    max_per_request: int = Field(
        default=2, ge=0, le=10, description="Maximum number of sub-agents per question."
    )
    max_recursion_depth: int = constant(1)  # sub-agents cannot start sub-agents
    child_timeout_ms: int = constant(30_000)  # an estimate, not measured
    child_max_turns: int = constant(6)  # an estimate, not measured
    child_max_tool_calls: int = constant(16)  # an estimate, not measured
    child_retry_count: int = constant(1)  # an estimate, not measured
    child_retry_backoff_ms: int = constant(750)  # an estimate, not measured
    child_min_latency_ms: int = constant(4_000)  # enough for a search and a short model turn; unmeasured
    # Enough for the first token, 600 tokens at 70 per second, and the commit.
    reserve_latency_ms: int = constant(12_000)
    # 10,000 for whole documents, 4,000 for rules and findings, 4,000 for the answer, and some slack.
    reserve_tokens: int = constant(20_000)
    max_active: int = Field(
        default=20,  # enough for ten questions with two sub-agents each; unmeasured
        ge=0,
        description="Maximum number of concurrent sub-agents of all instances.",
    )
    max_queue_depth: int = constant(20)  # same as the default of `max_active`; unmeasured
    restricted_tools_only: bool = Field(
        default=False, description="Whether sub-agents may only use the tools in SUBAGENTS_RESTRICTED_TOOLS."
    )
    restricted_tools: str = Field(
        default="retrieve_documents,query_metadata",
        description=(
            "Tools of restricted sub-agents, comma separated: retrieve_documents, query_metadata, web_search."
        ),
    )
    compliance_mode: Literal["normal", "strict"] = Field(
        default="normal",
        description=(
            "strict = sub-agents may only use the tools in SUBAGENTS_RESTRICTED_TOOLS, and never the web."
        ),
    )
    sensitive_departments: str = Field(
        default="",
        description="Departments whose documents must not be combined with web search, comma separated.",
        examples=["Human Resources,Legal"],
    )
    degraded_mode: bool = Field(
        default=False, description="Whether sub-agents are temporarily disabled, e.g. during an outage."
    )
    # This value is an estimate, not measured.
    circuit_breaker_failure_rate_threshold: float = constant(
        0.35, alias="CIRCUIT_BREAKER_FAILURE_RATE_THRESHOLD"
    )
    circuit_breaker_window_requests: int = constant(50, alias="CIRCUIT_BREAKER_WINDOW_REQUESTS")
    circuit_breaker_cooldown_seconds: int = constant(300, alias="CIRCUIT_BREAKER_COOLDOWN_SECONDS")

    @property
    def restricted_tool_names(self) -> tuple[str, ...]:
        """Tool names listed in SUBAGENTS_RESTRICTED_TOOLS."""
        return listed(self.restricted_tools)

    @property
    def sensitive_department_names(self) -> tuple[str, ...]:
        """Departments listed in SUBAGENTS_SENSITIVE_DEPARTMENTS, case-folded for comparison."""
        return tuple(name.casefold() for name in listed(self.sensitive_departments))

    @model_validator(mode="after")
    def _check_tools(self) -> Self:
        unknown = [name for name in self.restricted_tool_names if name not in SUBAGENT_TOOLS]
        if unknown:
            raise ValueError(
                f"SUBAGENTS_RESTRICTED_TOOLS contains an unknown tool: {', '.join(unknown)}. "
                "Example: SUBAGENTS_RESTRICTED_TOOLS=retrieve_documents,query_metadata"
            )
        return self


class ThresholdSettings(SettingsGroup):
    """Thresholds of delegation. Retrieval scores that decide whether a question needs sub-agents."""

    # Not measured with real models. docs/models.md explains the scale of scores.
    low_retrieval_confidence_top_score: float = constant(0.62)
    high_confidence_no_delegate_top_score: float = constant(0.78)
    low_score_spread_ambiguity: float = constant(0.08)
    high_score_spread_clarity: float = constant(0.15)


class BudgetSettings(SettingsGroup):
    """Budgets per question. Limits on tokens, money and time."""

    budget_preset: Literal["default", "tight"] = Field(
        default="default",
        description="tight = small budgets; explicit ones take precedence.",
        examples=["tight"],
    )
    max_total_tokens_per_request: int = Field(
        default=120_000, gt=0, description="Maximum number of tokens per question, including its sub-agents."
    )
    max_child_tokens: int = constant(30_000)  # an estimate, not measured
    max_subagent_cost_usd: float = Field(
        default=0.30, ge=0, description="Maximum cost of a question's sub-agents in US dollars."
    )
    max_child_cost_usd: float = constant(0.12)  # an estimate, not measured
    max_total_latency_ms: int = Field(
        default=60_000,
        gt=0,
        description="Maximum time from question to answer in milliseconds.",
    )
    # `reserve_latency_ms` plus the time of a minimal delegated task.
    min_remaining_latency_to_delegate_ms: int = constant(20_000)
    # `reserve_tokens` plus the tokens of one turn with passages.
    min_remaining_tokens_to_delegate: int = constant(26_000)
    # Unmeasured; roughly the cost of one turn of a small model.
    min_remaining_cost_to_delegate_usd: float = constant(0.005)


# These values replace the defaults if BUDGET_PRESET is `tight`.
TIGHT_BUDGETS: Mapping[str, float] = {
    "MAX_TOTAL_TOKENS_PER_REQUEST": 24_000,
    "MAX_CHILD_TOKENS": 8_000,
    "MAX_SUBAGENT_COST_USD": 0.08,
    "MAX_CHILD_COST_USD": 0.03,
    "MAX_TOTAL_LATENCY_MS": 25_000,
    "MIN_REMAINING_LATENCY_TO_DELEGATE_MS": 12_000,
    "MIN_REMAINING_TOKENS_TO_DELEGATE": 8_000,
    "SUBAGENTS_CHILD_TIMEOUT_MS": 15_000,
    "SUBAGENTS_CHILD_MAX_TURNS": 3,
    "SUBAGENTS_RESERVE_LATENCY_MS": 5_000,
    "SUBAGENTS_RESERVE_TOKENS": 6_000,
}


class WebSearchSettings(SettingsGroup, alias_generator=prefixed("WEB_SEARCH_")):
    """Web search. Connection to a search engine."""

    url: SafeUrl | None = Field(
        default=None,
        description="URL of the search engine's API; unset = web search is disabled.",
        examples=["https://NAME/search"],
    )
    engine: Literal["searxng", "brave"] = Field(
        default="searxng",
        description="Type of the search engine; `brave` always sends the key as X-Subscription-Token.",
    )
    key: HeaderValue | None = Field(
        default=None, description="API key of the search engine, if needed.", repr=False
    )
    key_header: HeaderName = Field(
        default="X-Api-Key",
        description="HTTP header for the API key. Ignored by `brave`.",
        examples=["Authorization"],
    )
