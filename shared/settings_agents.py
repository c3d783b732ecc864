"""Settings of conversations and of agents beside the answering one: a base of `Settings`, which is long."""

from pydantic import Field

from shared.settings_limits import LimitSettings
from shared.settings_model import ModelSettings
from shared.settings_subagents import SubagentSettings
from shared.settings_telemetry import TelemetrySettings
from shared.settings_web import WebSearchSettings


class AgentSettings(ModelSettings, SubagentSettings, WebSearchSettings, LimitSettings, TelemetrySettings):
    """What is kept of conversations, what limits summaries of documents, sub-agents, and the web."""

    conversation_turns: int = Field(
        default=6,
        ge=2,
        le=30,
        description="Turns of a thread that a question is given as they were; once there are more, the older "
        "half is compressed into the thread's summary.",
    )
    run_retention_days: int = Field(
        default=30,
        ge=1,
        description="Days after which a run's events and working memory are deleted, and a summary of "
        "documents; a run's answer stays as long as its thread.",
    )

    summary_timeout_s: float = Field(
        default=900,
        gt=0,
        le=6 * 3600,
        description="Most seconds for a summary of documents; what is read by then is summed up.",
    )
    summary_call_timeout_s: float = Field(
        default=60, gt=0, le=240, description="Most seconds for one call of the model for a summary."
    )
    summary_window_tokens: int = Field(
        default=3000,  # unmeasured: small enough for findings from everywhere, large enough to be few
        ge=300,
        le=100_000,
        description="Most tokens of a document that the model reads at once for a summary.",
    )
    summary_max_windows: int = Field(
        default=120,
        ge=1,
        le=900,
        description="Most windows of one document; a longer one is summarised in part, with a warning.",
    )
    summary_documents_at_once: int = Field(
        default=4, ge=1, le=20, description="Documents of one summary that are read at the same time."
    )
    summary_output_tokens: int = Field(
        default=4000,  # as for an answer: the hidden reasoning of a reasoning model counts as well
        gt=0,
        description="Most tokens that the model writes in one call for a summary, hidden reasoning included.",
    )
