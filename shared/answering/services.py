"""Protocols for the clients and stores that answering uses. `shared.wiring.Services` implements them."""

from collections.abc import Mapping
from typing import Protocol, Self

from shared.access.audit_trail import AuditTrail
from shared.access.user_limit_store import UserLimitStore
from shared.answering.control import ControlStore
from shared.platform.language_models.models import ChatModel
from shared.platform.settings import Settings
from shared.quality.services import QualityServices
from shared.runs.run_log import RunLog
from shared.tools.base import Tool
from shared.tools.services import ToolServices


class SubagentServices(ToolServices, Protocol):
    """The clients and stores that sub-agents use."""

    run_log: RunLog
    subagent_control: ControlStore
    user_limits: UserLimitStore

    def using(self, *, chat_model: ChatModel | None = None) -> Self:
        """Return a copy that uses another chat model, or the same one if it is None."""

    def chat_model_named(self, name: str) -> ChatModel:
        """Return a chat model that uses the deployment `name` at the same endpoint."""


class AnsweringServices(QualityServices, SubagentServices, Protocol):
    """The clients and stores that answering uses, including those of sub-agents."""

    user_limits: UserLimitStore
    audit: AuditTrail
    own_tools: Mapping[str, Tool]

    def using(
        self,
        *,
        chat_model: ChatModel | None = None,
        run_log: RunLog | None = None,
        settings: Settings | None = None,
        own_tools: Mapping[str, Tool] | None = None,
    ) -> Self:
        """Return a copy in which the given parts are replaced. Parts that are None stay unchanged."""
