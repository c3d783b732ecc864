"""Ports of what is kept of requests: keys that people sent, what they used up. Part of `shared.ports`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

# For annotations alone: the start of the app need not build every model.
if TYPE_CHECKING:
    from datetime import datetime

    from shared.models.idempotency import Claim
    from shared.models.limits import UserLimits


class IdempotencyStore(Protocol):
    """The first request of each key, by person."""

    async def create(self, user_id: str, key: str, claim: Claim) -> Claim:
        """The claim as stored. ConflictError when the person's key has one."""

    async def get(self, user_id: str, key: str) -> Claim | None: ...

    async def replace(self, user_id: str, key: str, claim: Claim) -> Claim:
        """The claim as stored. ConflictError when it changed, or went, since `claim.revision` was read."""

    async def delete(self, user_id: str, key: str) -> None:
        """Forget it; one that is gone is no error."""

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Remove claims made before `moment`; how many, at most `most`."""

    async def forget(self, user_id: str) -> int:
        """Remove all claims of a person; how many."""


class UserLimitStore(Protocol):
    """What each person has used up."""

    async def read(self, user_id: str) -> UserLimits:
        """Their row; an empty one without revision when there is none yet."""

    async def write(self, user_id: str, state: UserLimits) -> UserLimits:
        """The row as stored. ConflictError when it changed since `state.revision` was read."""

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Remove rows that nobody wrote to since `moment`; how many, at most `most`."""

    async def forget(self, user_id: str) -> int:
        """Remove a person's row; how many there were."""
