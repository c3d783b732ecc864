"""The clients and stores that `shared.subagents` uses, a part of `shared.wiring.Services`."""

from typing import Protocol, Self

from shared.access.user_limit_store import UserLimitStore
from shared.platform.language_models.models import ChatModel
from shared.runs.run_log import RunLog
from shared.subagents.control import ControlStore
from shared.subagents.metrics import MetricStore
from shared.tools.services import ToolServices


class SubagentServices(ToolServices, Protocol):
    """What subagents needs of the outside world."""

    run_log: RunLog
    subagent_control: ControlStore
    subagent_metrics: MetricStore
    user_limits: UserLimitStore

    def using(self, *, chat_model: ChatModel | None = None) -> Self:
        """The same with another model."""

    def chat_model_named(self, name: str) -> ChatModel:
        """A model of the same endpoint."""
