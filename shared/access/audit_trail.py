"""The audit trail: who read, changed, published or deleted which documents, when, and from where.

An entry is stored before its response is sent, because later writes would be lost when the process ends.
Repeated reads, such as a page refreshing its list, add one entry per ten minutes (`REPEAT_AFTER`), so a list
costs one insert when it changes and none while it is refreshed.

Only this module writes to the table. Entries are never changed, with one exception: erasing a person replaces
their id by a pseudonym and removes the address. Entries expire after AUDIT_RETENTION_DAYS. Keys count down,
so the newest entry comes first.
"""

import asyncio
import json
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.access.admission import ORGANISATION
from shared.access.models import AuditAction, AuditEntry, AuditPage
from shared.access.security_filter import PUBLIC
from shared.platform.errors import ConflictError, GroundworkError
from shared.platform.hashing import digest
from shared.platform.odata import quote
from shared.platform.tables import Entity, Table
from shared.platform.telemetry import get_logger, pseudonym

REPEAT_AFTER = timedelta(minutes=10)
"""If a person repeats an action within this time, no further entry is stored."""

# Number of recent entries remembered per process, about 200 bytes each.
_MAX_REMEMBERED = 10_000
_ADD_LIMIT_S = 2.0  # a response waits for the entry, which usually takes a few milliseconds
# Rows scanned per page. Without a limit, a filter for a rarely read document would scan the whole table.
_MAX_SCANNED = 5000
# Actions that a repeated step of a run records again. Their row keys are derived from the run, so each is
# stored once.
_OF_STEPS: frozenset[AuditAction] = frozenset({"answer", "cancel", "fail"})
_HOUR_KEYS = 10**8
_MICROSECOND_KEYS = 10**17


@dataclass(frozen=True)
class AuditFilter:
    """Criteria for audit entries from `since` (inclusive) to `until` (exclusive). Empty fields match every
    entry.
    """

    since: datetime
    until: datetime
    user_id: str = ""
    doc_id: str = ""
    action: AuditAction | None = None


class AuditTrail:
    """Storage of audit entries, with paged queries."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._added: OrderedDict[str, datetime] = OrderedDict()

    async def add_unless_repeated(self, entry: AuditEntry) -> None:
        """Store an entry unless this process stored the same action of the person within `REPEAT_AFTER` (ten
        minutes).
        """
        key = digest(entry.user_id, entry.action, entry.run_id, entry.subject, entry.origin, *entry.doc_ids)
        before = self._added.get(key)
        if before is not None and entry.at - before < REPEAT_AFTER:
            return
        await self.add(entry)
        self._added[key] = entry.at
        self._added.move_to_end(key)
        while len(self._added) > _MAX_REMEMBERED:
            self._added.popitem(last=False)

    async def add(self, entry: AuditEntry) -> None:
        """Store an entry. If a repeated step of a run has already stored it, do nothing."""
        try:
            await self._table.insert(_to_entity(entry))
        except ConflictError:
            return

    async def page(self, criteria: AuditFilter, limit: int, cursor: str = "") -> AuditPage:
        """Return a page of up to `limit` matching entries, newest first. `cursor` is that of the previous
        page, or "" for the first page.
        """
        entries: list[AuditEntry] = []
        scanned, last = 0, cursor
        async for row in self._table.query(_condition(criteria, cursor), page_size=min(1000, limit * 4)):
            entry = _from_entity(row)
            scanned += 1
            last = f"{row['PartitionKey']}.{row['RowKey']}"
            is_within = criteria.since <= entry.at < criteria.until
            if is_within and (not criteria.doc_id or criteria.doc_id in entry.doc_ids):
                entries.append(entry)
            if len(entries) == limit or scanned == _MAX_SCANNED:
                return AuditPage(entries=tuple(entries), cursor=last)
        return AuditPage(entries=tuple(entries), cursor=None)

    async def pseudonymise(self, user_id: str) -> int:
        """Replace a person's id with a pseudonym and remove the network addresses in all their entries.
        Return the number of changed entries.
        """
        count = 0
        async for row in self._table.query(f"user_id eq {quote(user_id)}"):
            keys = {"PartitionKey": row["PartitionKey"], "RowKey": row["RowKey"]}
            await self._table.merge({**keys, "user_id": pseudonym(user_id), "origin": ""})
            count += 1
        return count

    async def delete_before(self, moment: datetime, most: int = 10_000) -> int:
        """Delete up to `most` entries older than the hour that contains `moment`. Return the number of
        deleted entries.
        """
        return await self._table.delete_found(f"PartitionKey gt {quote(_hour_key(moment))}", most)


async def record_act(trail: AuditTrail, entry: AuditEntry, *, may_repeat: bool = False) -> None:
    """Store an audit entry within 2 seconds. Failures are never raised, but logged as an alert for operators.

    Args:
        may_repeat: skip the entry if an equal one was stored in the last ten minutes.
    """
    try:
        async with asyncio.timeout(_ADD_LIMIT_S):
            await (trail.add_unless_repeated(entry) if may_repeat else trail.add(entry))
    except (GroundworkError, TimeoutError) as failed:
        get_logger().error("audit.write_failed", kind=entry.action, error_type=type(failed).__name__)


def access_action(acl: Sequence[str]) -> AuditAction:
    """Return the audit action for setting an access list: `publish` if it includes everyone or an
    organisation, otherwise `change_access`.
    """
    return "publish" if is_wide(acl) else "change_access"


def is_wide(acl: Sequence[str]) -> bool:
    """Return whether an access list includes everyone or a whole organisation."""
    return any(name == PUBLIC or name.startswith(ORGANISATION) for name in acl)


def _hour_key(moment: datetime) -> str:
    return f"{_HOUR_KEYS - int(moment.timestamp() // 3600):08d}"


def _to_entity(entry: AuditEntry) -> Entity:
    at = entry.at.astimezone(UTC)
    microseconds = int(at.timestamp()) * 1_000_000 + at.microsecond
    unique = uuid.uuid4().hex
    if entry.action in _OF_STEPS:
        unique = f"{entry.run_id}-{digest(entry.action, *entry.doc_ids)[:8]}"
    return {
        "PartitionKey": _hour_key(at),
        "RowKey": f"{_MICROSECOND_KEYS - microseconds:017d}-{unique}",
        **entry.model_dump(mode="json", exclude={"doc_ids"}),
        "at": at.isoformat(),
        "doc_ids": json.dumps(entry.doc_ids),
    }


def _from_entity(row: Mapping[str, Any]) -> AuditEntry:
    values = {name: row[name] for name in AuditEntry.model_fields if row.get(name) is not None}
    return AuditEntry.from_payload({**values, "doc_ids": json.loads(str(row["doc_ids"]))})


def _condition(criteria: AuditFilter, cursor: str) -> str:
    last_hour = criteria.until - timedelta(microseconds=1)
    conditions = [
        f"PartitionKey ge {quote(_hour_key(last_hour))}",
        f"PartitionKey le {quote(_hour_key(criteria.since))}",
    ]
    if criteria.user_id:
        conditions.append(f"user_id eq {quote(criteria.user_id)}")
    if criteria.action:
        conditions.append(f"action eq {quote(criteria.action)}")
    if cursor:
        hour, _, key = cursor.partition(".")
        is_later = f"PartitionKey eq {quote(hour)} and RowKey gt {quote(key)}"
        conditions.append(f"(PartitionKey gt {quote(hour)} or ({is_later}))")
    return " and ".join(conditions)
