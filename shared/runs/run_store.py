"""run_store."""

# For annotations alone: the start of the app need not build every model.
from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from shared.runs.models import Feedback, RunRecord


class RunStore(Protocol):
    """Records of runs."""

    async def create(self, record: RunRecord) -> None:
        """ConflictError when the id exists."""

    async def get(self, run_id: str) -> RunRecord | None: ...

    async def replace(self, record: RunRecord) -> None: ...

    async def set_feedback(self, run_id: str, feedback: Feedback | None) -> None:
        """Change this alone, whoever writes the rest. NotFoundError when there is no such run."""

    async def delete(self, run_id: str) -> None:
        """Remove the record; an absent one is no error. `replace` fails from then on."""

    def ended_before(self, moment: datetime) -> AsyncIterator[RunRecord]:
        """Runs that ended before `moment` and still have their log."""

    def of_owner(self, owner_id: str) -> AsyncIterator[RunRecord]:
        """All of a person's. Reads the whole table: for erasing a person, who may have no thread any more."""
