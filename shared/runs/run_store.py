"""Records of runs, in a table: one entity per run, made for reading by id."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from shared.access.models import UserContext
from shared.platform.errors import NotFoundError
from shared.platform.tables import Entity, Table
from shared.runs.models import ID_PATTERN, Feedback, RunRecord

ROW_KEY = "run"


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


class TableRunStore(RunStore):
    """Records of runs. The partition is the run, so that runs spread over the service's servers."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def create(self, record: RunRecord) -> None:
        """ConflictError when the id exists."""
        await self._table.insert(_to_entity(record))

    async def get(self, run_id: str) -> RunRecord | None:
        """The record, or None."""
        entity = await self._table.get(run_id, ROW_KEY)
        return None if entity is None else _from_entity(entity)

    async def replace(self, record: RunRecord) -> None:
        """Overwrite. NotFoundError when the run was purged: a late writer does not bring it back."""
        await self._table.replace(_to_entity(record))

    async def set_feedback(self, run_id: str, feedback: Feedback | None) -> None:
        """Change this alone, whoever writes the rest. NotFoundError when there is no such run."""
        text = "" if feedback is None else feedback.model_dump_json()
        await self._table.merge({"PartitionKey": run_id, "RowKey": ROW_KEY, "feedback": text})

    async def delete(self, run_id: str) -> None:
        """Remove the record."""
        await self._table.delete(run_id, ROW_KEY)

    async def ended_before(self, moment: datetime) -> AsyncIterator[RunRecord]:
        """Runs that ended before `moment` and still have their log."""
        instant = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        condition = f"has_log eq true and finished_at lt datetime'{instant}'"
        async for entity in self._table.query(condition):
            yield _from_entity(entity)

    async def of_owner(self, owner_id: str) -> AsyncIterator[RunRecord]:
        """All of a person's: the whole table is read for them."""
        quoted = owner_id.replace("'", "''")
        async for entity in self._table.query(f"owner_id eq '{quoted}'"):
            yield _from_entity(entity)


def _to_entity(record: RunRecord) -> Entity:
    fields = record.model_dump(exclude={"run_id", "todo", "feedback"}, exclude_none=True)
    todo = [item.model_dump(mode="json") for item in record.todo]
    if record.feedback is not None:
        fields["feedback"] = record.feedback.model_dump_json()
    return {"PartitionKey": record.run_id, "RowKey": ROW_KEY, **fields, "todo": json.dumps(todo)}


def _from_entity(entity: Mapping[str, Any]) -> RunRecord:
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
