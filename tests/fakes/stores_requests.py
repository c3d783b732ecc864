"""Stores of idempotency keys and user limits in memory."""

from shared.access.idempotency import IdempotencyStore
from shared.access.user_limit_store import UserLimits, UserLimitStore
from tests.fakes.table import InMemoryTable


class InMemoryIdempotencyStore(IdempotencyStore):
    """The real store over a table in memory."""

    def __init__(self) -> None:
        self.table = InMemoryTable()
        super().__init__(self.table)


class InMemoryUserLimitStore(UserLimitStore):
    """The real store over a table in memory. It counts reads and records the last write per person."""

    def __init__(self, table: InMemoryTable | None = None) -> None:
        self.table = table or InMemoryTable()
        super().__init__(self.table)
        self.reads = 0
        self.rows: dict[str, UserLimits] = {}

    async def read(self, user_id: str) -> UserLimits:
        self.reads += 1
        return await super().read(user_id)

    async def write(self, user_id: str, state: UserLimits) -> UserLimits:
        self.rows[user_id] = await super().write(user_id, state)
        return self.rows[user_id]

    async def forget(self, user_id: str) -> int:
        self.rows.pop(user_id, None)
        return await super().forget(user_id)
