"""An agent as configuration: what it is for, which tools it has, what it may use. Pure.

All of it narrows: an agent never reads more than the person who asks, and never uses more than a question
may.
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
    """What one answer may use; the settings' limits hold as well.

    Attributes:
        turns: of the model (`max_agent_turns`).
        calls: of tools.
        tokens: read and written (MAX_TOTAL_TOKENS_PER_REQUEST).
        seconds: until the answer (MAX_TOTAL_LATENCY_MS).
    """

    turns: int | None = Field(default=None, ge=1, le=20)
    calls: int | None = Field(default=None, ge=0, le=100)
    tokens: int | None = Field(default=None, ge=1000)
    seconds: float | None = Field(default=None, ge=5)


class AgentFilters(Model):
    """The only documents that it sees: those with one of the values in each field that is given."""

    project_id: _Values | None = None
    department: _Values | None = None


class AgentChannels(Model):
    """Where it can be asked: `chat` is the API, the page, the command line and Teams."""

    chat: bool = True
    mcp: bool = True
    openai: bool = True


class AgentDefinition(Model):
    """An agent.

    Attributes:
        name: what it is asked by.
        description: one line for people who choose.
        instructions: what it is for and how it answers, in its owner's words; text, no template.
        tools: names; what is not named cannot be called.
        model: of the endpoint; None = CHAT_MODEL.
        access: principals of those who may ask it, as of a document.
        proof: `required`: it states only what documents prove, as answers do without an agent. `optional`:
            it may state what its tools or the person say; what it quotes is checked all the same.
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
        """Whether the person may ask it."""
        return may_read(user, self.access)

    def narrowed(self, user: UserContext) -> UserContext:
        """The person, seeing only the documents that the agent may see."""
        filters = {name: values for name, values in self.filters if values}
        return user.model_copy(update={"within": filters}) if filters else user

    def limited(self, settings: Settings) -> Settings:
        """The settings with the agent's limits where they are narrower."""
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
    """An agent as those see it who may ask it."""

    name: str = Field(description="What it is called, in `agent` of a question.")
    description: str = Field(description="What it is for.")
    tools: tuple[str, ...] = Field(description="Tools that it can call.")
    proof: Literal["required", "optional"] = Field(
        description="`required`: it states only what documents prove."
    )


class AgentList(Model):
    """The agents that the caller may ask, by name."""

    agents: tuple[AgentView, ...] = Field(description="The agents.")
