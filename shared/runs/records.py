"""records."""

import re

from shared.access.models import UserContext
from shared.platform.errors import NotFoundError
from shared.runs.models import ID_PATTERN, RunRecord
from shared.runs.run_store import RunStore


async def owned_run(run_id: str, user: UserContext, runs: RunStore) -> RunRecord:
    """The run's record.

    Raises:
        NotFoundError: there is no such run, or it belongs to somebody else; the two cannot be told apart.
    """
    record = await runs.get(run_id) if re.fullmatch(ID_PATTERN, run_id) else None
    if record is None or record.owner_id != user.user_id:
        raise NotFoundError(
            f"There is no run {run_id[:64]!r}.", "Check the id; runs are seen by their owner."
        )
    return record
