"""The subset of the app's services (`shared.wiring.Services`) that tools use."""

from collections.abc import Mapping
from typing import Protocol

from shared.access.audit_trail import AuditTrail
from shared.access.user_limit_store import UserLimitStore
from shared.conversations.services import ConversationServices
from shared.platform.search import SearchIndex
from shared.platform.web_pages import WebPages
from shared.tables.databases import Databases
from shared.tools.base import ToolClient
from shared.tools.web_search import WebSearch


class ToolServices(ConversationServices, Protocol):
    """The external services that tools use."""

    content_index: SearchIndex
    audit: AuditTrail
    user_limits: UserLimitStore
    databases: Databases
    web_search: WebSearch | None
    web_pages: WebPages | None
    tool_clients: Mapping[str, ToolClient]  # keyed by tool name; contains enabled tools only
