"""Records of runs, in a table: one entity per run, made for reading by id."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

from shared.access.models import UserContext
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.odata import instant, quote
from shared.platform.tables import Entity, Table, revision_of
from shared.runs.models import ID_PATTERN, Feedback, RunRecord
from shared.runs.revivals import RevivalCount, Verdict, counted_again, judge

ROW_KEY = "run"
REVIVALS_KEY = "revivals"


class RunStore:
    """Records of runs. The partition is the run, so that runs spread over the service's servers."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def create(self, record: RunRecord) -> None:
        """ConflictError when the id exists."""
        await self._table.insert(_to_entity(record))

    async def get(self, run_id: str) -> RunRecord | None:
        """The record, or None."""
        entity = await self._table.get(run_id, ROW_KEY)
        return None if entity is None else record_of(entity)

    async def replace(self, record: RunRecord) -> None:
        """Overwrite. NotFoundError when the run was purged: a late writer does not bring it back."""
        await self._table.replace(_to_entity(record))

    async def set_feedback(self, run_id: str, feedback: Feedback | None) -> None:
        """Change this alone; other writers change the rest. NotFoundError when there is no such run."""
        text = "" if feedback is None else feedback.model_dump_json()
        await self._table.merge({"PartitionKey": run_id, "RowKey": ROW_KEY, "feedback": text})

    async def claim_revival(self, instance_id: str, asked_at: datetime | None, now: datetime) -> Verdict:
        """Count one more revival, if there may be one; of several who ask at once, one gets `revive`.

        `instance_id`: of a run, or of any other orchestration.
        """
        # The count has a row for itself: `replace` overwrites the run's.
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
        """Forget the counts of instances that were last revived before `moment`; how many, at most `most`."""
        return await self._table.delete_before("revived_at", moment, most)

    async def delete(self, run_id: str) -> None:
        """Remove the record; an absent one is no error. `replace` fails from then on."""
        await self._table.delete(run_id, REVIVALS_KEY)
        await self._table.delete(run_id, ROW_KEY)

    async def ended_before(self, moment: datetime) -> AsyncIterator[RunRecord]:
        """Runs that ended before `moment` and still have their log."""
        async for entity in self._table.query(f"has_log eq true and finished_at lt {instant(moment)}"):
            yield record_of(entity)

    async def of_owner(self, owner_id: str, prefix: str) -> AsyncIterator[RunRecord]:
        """Yield a person's runs, also those without a thread.

        Args:
            prefix: of the ids of everything that is theirs (`owner_prefix`); no other row is read.
        """
        # Ids go on with a hexadecimal digit, and all of these sort below "g".
        theirs = f"PartitionKey ge {quote(prefix)} and PartitionKey lt {quote(prefix + 'g')}"
        async for entity in self._table.query(f"{theirs} and owner_id eq {quote(owner_id)}"):
            yield record_of(entity)


async def owned_run(run_id: str, user: UserContext, runs: RunStore) -> RunRecord:
    """The run's record.

    Raises:
        NotFoundError: there is no such run, or it belongs to somebody else; the two look the same.
    """
    record = await runs.get(run_id) if re.fullmatch(ID_PATTERN, run_id) else None
    if record is None or record.owner_id != user.user_id:
        raise NotFoundError(
            f"There is no run {run_id[:64]!r}.", "Check the id; runs are seen by their owner."
        )
    return record


def _to_entity(record: RunRecord) -> Entity:
    fields = record.model_dump(exclude={"run_id", "todo", "feedback"}, exclude_none=True)
    todo = [item.model_dump(mode="json") for item in record.todo]
    if record.feedback is not None:
        fields["feedback"] = record.feedback.model_dump_json()
    return {"PartitionKey": record.run_id, "RowKey": ROW_KEY, **fields, "todo": json.dumps(todo)}


def record_of(entity: Mapping[str, Any]) -> RunRecord:
    """The record that a row holds."""
    fields = {name: entity[name] for name in RunRecord.model_fields if name in entity}
    feedback = fields.get("feedback")  # empty when it was taken back: a merge removes no property
    return RunRecord.model_validate(
        {
            **fields,
            "run_id": entity["PartitionKey"],
            "todo": json.loads(entity["todo"]),
            "feedback": json.loads(feedback) if feedback else None,
        }
    )
