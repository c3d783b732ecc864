"""Protocols of the clients and stores for answering, implemented by `shared.wiring.Services`."""

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
    """The services that sub-agents use."""

    run_log: RunLog
    subagent_control: ControlStore
    user_limits: UserLimitStore

    def using(self, *, chat_model: ChatModel | None = None) -> Self:
        """Return a copy of the services with another chat model."""

    def chat_model_named(self, name: str) -> ChatModel:
        """Return the chat model with this name at the same endpoint."""


class AnsweringServices(QualityServices, SubagentServices, Protocol):
    """The external services that answering uses."""

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
        """Return a copy with the given parts replaced."""
