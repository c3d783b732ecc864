"""Configuration of an agent: purpose, tools, limits and access. Pure.

Every setting only narrows: an agent never reads more than its user may read, and never exceeds the limits of
a question without an agent.
"""

from typing import Annotated, Literal

from pydantic import Field

from shared.access.models import UserContext
from shared.access.security_filter import may_read
from shared.platform.models import Model
from shared.platform.settings import Settings

Channel = Literal["chat", "mcp", "openai"]
AGENT_NAME = r"^[a-z][a-z0-9-]{0,39}$"

_Values = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=128)], ...], Field(min_length=1)]


class AgentLimits(Model):
    """Limits of a single answer by the agent. The lower of a limit and the corresponding setting applies.

    Attributes:
        turns: model turns (`max_agent_turns`).
        calls: tool calls.
        tokens: input and output tokens (MAX_TOTAL_TOKENS_PER_REQUEST).
        seconds: time until the answer (MAX_TOTAL_LATENCY_MS).
    """

    turns: int | None = Field(default=None, ge=1, le=20)
    calls: int | None = Field(default=None, ge=0, le=100)
    tokens: int | None = Field(default=None, ge=1000)
    seconds: float | None = Field(default=None, ge=5)


class AgentFilters(Model):
    """Document filters of an agent: in every field given, a document must have one of the listed values."""

    project_id: _Values | None = None
    department: _Values | None = None


class AgentChannels(Model):
    """Channels in which users may ask the agent. `chat` covers the API, the web page, the command line and
    Teams.
    """

    chat: bool = True
    mcp: bool = True
    openai: bool = True


class AgentDefinition(Model):
    """The definition of an agent that users may ask, loaded from its Markdown file.

    Attributes:
        name: identifier used in requests.
        description: one line that helps users choose.
        instructions: the owner's instructions, as plain text without placeholders.
        tools: names of the tools that the agent may call.
        model: model of the endpoint; None = CHAT_MODEL.
        access: principals of the users who may ask the agent, as in a document's access list.
        proof: `required`: every statement needs proof from a document, as without an agent. `optional`:
            statements may come from tools or the user; quotations are checked all the same.
    """

    name: str = Field(pattern=AGENT_NAME)
    description: str = Field(min_length=1, max_length=300)
    instructions: str = Field(min_length=1, max_length=20_000)
    tools: tuple[str, ...] = ()
    model: str | None = Field(default=None, min_length=1, max_length=100)
    limits: AgentLimits = AgentLimits()
    filters: AgentFilters = AgentFilters()
    access: tuple[str, ...] = Field(min_length=1)
    proof: Literal["required", "optional"] = "required"
    expose: AgentChannels = AgentChannels()

    def is_open_to(self, user: UserContext) -> bool:
        """Return whether the user may ask the agent."""
        return may_read(user, self.access)

    def restrict_user(self, user: UserContext) -> UserContext:
        """Return a copy of the user who can read only the documents that match the agent's filters."""
        filters = {name: values for name, values in self.filters if values}
        return user.model_copy(update={"within": filters}) if filters else user

    def limit_settings(self, settings: Settings) -> Settings:
        """Return a copy of the settings in which the agent's lower limits replace higher ones."""
        limits, budgets, answering = self.limits, settings.budgets, settings.answering
        latency_ms = budgets.max_total_latency_ms
        tokens = budgets.max_total_tokens_per_request
        lower = {
            "max_total_latency_ms": min(latency_ms, round(1000 * (limits.seconds or latency_ms))),
            "max_total_tokens_per_request": min(tokens, limits.tokens or tokens),
        }
        turns = min(answering.max_agent_turns, limits.turns or answering.max_agent_turns)
        return settings.model_copy(
            update={
                "budgets": budgets.model_copy(update=lower),
                "answering": answering.model_copy(update={"max_agent_turns": turns}),
            }
        )


class AgentView(Model):
    """An agent as shown to the users who may ask it."""

    name: str = Field(description="Name to use in the field `agent` of a question.")
    description: str = Field(description="Purpose of the agent.")
    tools: tuple[str, ...] = Field(description="Names of the tools that the agent may call.")
    proof: Literal["required", "optional"] = Field(
        description="`required`: every statement needs proof from a document."
    )


class AgentList(Model):
    """The agents that the caller may ask, sorted by name."""

    agents: tuple[AgentView, ...] = Field(description="Agents that the caller may ask.")
