"""Records of runs in a table, one entity per run."""

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
from shared.runs.revivals import RevivalCount, Verdict, counted_again, judge

ROW_KEY = "run"
REVIVALS_KEY = "revivals"


class RunStore:
    """Records of runs. Each run is a partition, so that runs are spread over the service's servers."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def create(self, record: RunRecord) -> None:
        """Insert a record. Raise ConflictError if the id exists."""
        await self._table.insert(_to_entity(record))

    async def get(self, run_id: str) -> RunRecord | None:
        """Return the record, or None."""
        entity = await self._table.get(run_id, ROW_KEY)
        return None if entity is None else record_of(entity)

    async def replace(self, record: RunRecord) -> None:
        """Overwrite the record.

        Raises:
            NotFoundError: the run was purged. A late writer can't restore it.
        """
        await self._table.replace(_to_entity(record))

    async def set_feedback(self, run_id: str, feedback: Feedback | None) -> None:
        """Change only the feedback, since other writers change the rest.

        Raises:
            NotFoundError: the run doesn't exist.
        """
        text = "" if feedback is None else feedback.model_dump_json()
        await self._table.merge({"PartitionKey": run_id, "RowKey": ROW_KEY, "feedback": text})

    async def claim_revival(self, instance_id: str, asked_at: datetime | None, now: datetime) -> Verdict:
        """Count another revival if one is allowed. Of several concurrent callers, only one gets `revive`.

        `instance_id` may be a run or any other orchestration.
        """
        # The count has a separate row, because `replace` overwrites the run's.
        entity = await self._table.get(instance_id, REVIVALS_KEY)
        counted = None if entity is None else RevivalCount.from_stored(entity["revivals"])
        verdict = judge(counted, asked_at, now)
        if verdict != "revive":
            return verdict
        again = counted_again(counted, now)
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
        """Delete up to `most` counts whose last revival was before `moment`; return their number."""
        return await self._table.delete_before("revived_at", moment, most)

    async def delete(self, run_id: str) -> None:
        """Delete the record. Missing records are ignored. Later calls of `replace` fail."""
        await self._table.delete(run_id, REVIVALS_KEY)
        await self._table.delete(run_id, ROW_KEY)

    async def ended_before(self, moment: datetime) -> AsyncIterator[RunRecord]:
        """Yield the runs that ended before `moment` and still have their log."""
        async for entity in self._table.query(f"has_log eq true and finished_at lt {instant(moment)}"):
            yield record_of(entity)

    async def of_owner(self, owner_id: str, prefix: str) -> AsyncIterator[RunRecord]:
        """Yield a user's runs, including those without a thread.

        Args:
            prefix: prefix of the user's ids (`owner_prefix`); no other row is read.
        """
        # Letters and digits follow the prefix, and all of them sort before "~".
        theirs = f"PartitionKey ge {quote(prefix)} and PartitionKey lt {quote(prefix + '~')}"
        async for entity in self._table.query(f"{theirs} and owner_id eq {quote(owner_id)}"):
            yield record_of(entity)

    async def dated(self, owner_id: str, prefix: str, after: str = "") -> AsyncIterator[RunRecord]:
        """Yield a user's runs with dated ids, newest first.

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
    """Return the record of a question's run, or of a summary.

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
    """Return the record stored in a table row."""
    fields = {name: entity[name] for name in RunRecord.model_fields if name in entity}
    feedback = fields.get("feedback")  # empty if withdrawn, since a merge can't remove a property
    return RunRecord.model_validate(
        {
            **fields,
            "run_id": entity["PartitionKey"],
            "todo": json.loads(entity["todo"]),
            "feedback": json.loads(feedback) if feedback else None,
        }
    )
