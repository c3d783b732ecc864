"""Table of run records, one entity per run."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

from shared.access.models import UserContext
from shared.access.owner_ids import dated_range
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.odata import instant, quote
from shared.platform.tables import Entity, Table, revision_of
from shared.runs.models import ID_PATTERN, Feedback, RunProfile, RunRecord
from shared.runs.revivals import RevivalCount, Verdict, increment, judge

ROW_KEY = "run"
REVIVALS_KEY = "revivals"


class RunStore:
    """Store of run records. Each run has its own partition, which spreads the load over the service's
    servers.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    async def create(self, record: RunRecord) -> None:
        """Insert a record. Raise ConflictError if the id exists."""
        await self._table.insert(_to_entity(record))

    async def get(self, run_id: str) -> RunRecord | None:
        """Return the record, or None if it doesn't exist."""
        entity = await self._table.get(run_id, ROW_KEY)
        return None if entity is None else record_of(entity)

    async def replace(self, record: RunRecord) -> None:
        """Overwrite the record.

        Raises:
            NotFoundError: the run was purged. A late writer can't restore it.
        """
        await self._table.replace(_to_entity(record))

    async def set_feedback(self, run_id: str, feedback: Feedback | None) -> None:
        """Update only the feedback, because other writers update the rest of the record.

        Raises:
            NotFoundError: the run doesn't exist.
        """
        text = "" if feedback is None else feedback.model_dump_json()
        await self._table.merge({"PartitionKey": run_id, "RowKey": ROW_KEY, "feedback": text})

    async def claim_revival(self, instance_id: str, asked_at: datetime | None, now: datetime) -> Verdict:
        """Decide whether to restart a failed orchestration instance, and count the restart. Of several
        concurrent callers, only one gets `revive`.

        `instance_id` may be a run or any other orchestration.
        """
        # The count has its own row, because `replace` overwrites the row of the run.
        entity = await self._table.get(instance_id, REVIVALS_KEY)
        counted = None if entity is None else RevivalCount.from_stored(entity["revivals"])
        verdict = judge(counted, asked_at, now)
        if verdict != "revive":
            return verdict
        again = increment(counted, now)
        row: Entity = {
            "PartitionKey": instance_id,
            "RowKey": REVIVALS_KEY,
            "revivals": again.model_dump_json(),
            "revived_at": now,
        }
        try:
            if entity is None:
                await self._table.insert(row)
            else:
                await self._table.replace(row, revision_of(entity))
        except ConflictError:
            return "wait"
        return "revive"

    async def purge_revivals(self, moment: datetime, most: int) -> int:
        """Delete up to `most` restart counts whose last restart was before `moment`, and return how many were
        deleted.
        """
        return await self._table.delete_before("revived_at", moment, most)

    async def delete(self, run_id: str) -> None:
        """Delete the record. A missing record is ignored. Later calls of `replace` fail."""
        await self._table.delete(run_id, REVIVALS_KEY)
        await self._table.delete(run_id, ROW_KEY)

    async def ended_before(self, moment: datetime) -> AsyncIterator[RunRecord]:
        """Yield runs that ended before `moment` and whose journal has not been purged yet."""
        async for entity in self._table.query(f"has_log eq true and finished_at lt {instant(moment)}"):
            yield record_of(entity)

    async def of_owner(self, owner_id: str, prefix: str) -> AsyncIterator[RunRecord]:
        """Yield all runs of a user, whether or not they belong to a thread.

        Args:
            prefix: prefix of the user's ids (`owner_prefix`); no other row is read.
        """
        # Letters and digits follow the prefix, and all of them sort before "~".
        theirs = f"PartitionKey ge {quote(prefix)} and PartitionKey lt {quote(prefix + '~')}"
        async for entity in self._table.query(f"{theirs} and owner_id eq {quote(owner_id)}"):
            yield record_of(entity)

    async def dated(self, owner_id: str, prefix: str, after: str = "") -> AsyncIterator[RunRecord]:
        """Yield the runs of a user whose ids contain a date, newest first.

        Args:
            prefix: as in `of_owner`.
            after: the id before the first one to yield; empty = none.
        """
        first, last = dated_range(prefix, after)
        theirs = f"PartitionKey gt {quote(first)} and PartitionKey lt {quote(last)}"
        async for entity in self._table.query(f"{theirs} and owner_id eq {quote(owner_id)}"):
            yield record_of(entity)


async def owned_run(
    run_id: str, user: UserContext, runs: RunStore, profile: RunProfile = "answer"
) -> RunRecord:
    """Return the record of a run that the user owns.

    Raises:
        NotFoundError: the run doesn't exist, belongs to another user or has another profile; all look the
            same.
    """
    record = await runs.get(run_id) if re.fullmatch(ID_PATTERN, run_id) else None
    if record is None or record.owner_id != user.user_id or record.profile != profile:
        name = "run" if profile == "answer" else "summary"
        raise NotFoundError(
            f"There is no {name} {run_id[:64]!r}.", f"Check the id. Only the owner can see a {name}."
        )
    return record


def _to_entity(record: RunRecord) -> Entity:
    fields = record.model_dump(exclude={"run_id", "todo", "feedback"}, exclude_none=True)
    todo = [item.model_dump(mode="json") for item in record.todo]
    if record.feedback is not None:
        fields["feedback"] = record.feedback.model_dump_json()
    return {"PartitionKey": record.run_id, "RowKey": ROW_KEY, **fields, "todo": json.dumps(todo)}


def record_of(entity: Mapping[str, Any]) -> RunRecord:
    """Convert a table entity to a run record."""
    fields = {name: entity[name] for name in RunRecord.model_fields if name in entity}
    # empty if the feedback was withdrawn, because a merge can't remove a property
    feedback = fields.get("feedback")
    return RunRecord.model_validate(
        {
            **fields,
            "run_id": entity["PartitionKey"],
            "todo": json.loads(entity["todo"]),
            "feedback": json.loads(feedback) if feedback else None,
        }
    )
