"""The protocol of the services that `shared.erasure` needs, a subset of `shared.wiring.Services`."""

from typing import Protocol

from shared.access.audit_trail import AuditTrail
from shared.access.idempotency import IdempotencyStore
from shared.access.user_limit_store import UserLimitStore
from shared.conversations.services import ConversationServices
from shared.platform.queues import PoisonQueues
from shared.quality.services import QualityServices
from shared.teams.store import BotTurnStore


class ErasureServices(ConversationServices, QualityServices, Protocol):
    """Stores and clients that the functions of `shared.erasure` use."""

    poison: PoisonQueues
    idempotency: IdempotencyStore
    user_limits: UserLimitStore
    audit: AuditTrail
    bot_turns: BotTurnStore | None
