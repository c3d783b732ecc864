"""Keys that people sent, and what they used up, in memory."""

import itertools
from datetime import UTC, datetime

from shared.access.idempotency import Claim, IdempotencyStore
from shared.access.limits import UserLimits, UserLimitStore
from shared.platform.errors import ConflictError


class InMemoryIdempotencyStore(IdempotencyStore):
    """Claims by person and key."""

    def __init__(self) -> None:
        self.claims: dict[tuple[str, str], Claim] = {}
        self._revisions = itertools.count(1)

    async def create(self, user_id: str, key: str, claim: Claim) -> Claim:
        if (user_id, key) in self.claims:
            raise ConflictError("The record exists already.")
        return self._keep(user_id, key, claim)

    async def get(self, user_id: str, key: str) -> Claim | None:
        return self.claims.get((user_id, key))

    async def replace(self, user_id: str, key: str, claim: Claim) -> Claim:
        known = self.claims.get((user_id, key))
        if known is None or known.revision != claim.revision:
            raise ConflictError("The record changed.")
        return self._keep(user_id, key, claim)

    async def delete(self, user_id: str, key: str) -> None:
        self.claims.pop((user_id, key), None)

    async def delete_before(self, moment: datetime, most: int) -> int:
        old = [place for place, claim in self.claims.items() if claim.created_at < moment][:most]
        for place in old:
            del self.claims[place]
        return len(old)

    async def forget(self, user_id: str) -> int:
        theirs = [place for place in self.claims if place[0] == user_id]
        for place in theirs:
            del self.claims[place]
        return len(theirs)

    def _keep(self, user_id: str, key: str, claim: Claim) -> Claim:
        kept = claim.model_copy(update={"revision": f"revision-{next(self._revisions)}"})
        self.claims[user_id, key] = kept
        return kept


class InMemoryUserLimitStore(UserLimitStore):
    """One row per person; whoever writes what changed meanwhile is refused."""

    def __init__(self) -> None:
        self.rows: dict[str, UserLimits] = {}
        self.reads = 0
        self._written_at: dict[str, datetime] = {}
        self._revisions = itertools.count(1)

    async def read(self, user_id: str) -> UserLimits:
        self.reads += 1
        return self.rows.get(user_id, UserLimits())

    async def write(self, user_id: str, state: UserLimits) -> UserLimits:
        if state.revision != self.rows.get(user_id, UserLimits()).revision:
            raise ConflictError("The record changed.")
        self.rows[user_id] = state.model_copy(update={"revision": f"revision-{next(self._revisions)}"})
        self._written_at[user_id] = datetime.now(UTC)
        return self.rows[user_id]

    async def delete_before(self, moment: datetime, most: int) -> int:
        old = [user_id for user_id, at in self._written_at.items() if at < moment][:most]
        for user_id in old:
            del self.rows[user_id], self._written_at[user_id]
        return len(old)

    async def forget(self, user_id: str) -> int:
        self._written_at.pop(user_id, None)
        return 0 if self.rows.pop(user_id, None) is None else 1
