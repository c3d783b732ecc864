"""Tables with a partition per hour: time is read, and what is old goes, by hours."""

from collections import defaultdict
from datetime import UTC, datetime

from shared.clients.tables import Change, Table
from shared.errors import NotFoundError

_MOST_CHANGES = 100  # of one transaction: the service's limit


def hour_partition(moment: datetime) -> str:
    """The key of the partition of this instant's hour; keys sort as hours do."""
    return f"{moment.astimezone(UTC):%Y%m%d%H}"


async def delete_hours_before(table: Table, moment: datetime, most: int) -> int:
    """Remove rows of hours that ended before `moment`; how many, at most `most`."""
    found: defaultdict[str, list[Change]] = defaultdict(list)
    count = 0
    async for entity in table.query(f"PartitionKey lt '{hour_partition(moment)}'"):
        keys = {"PartitionKey": entity["PartitionKey"], "RowKey": entity["RowKey"]}
        found[entity["PartitionKey"]].append(Change("delete", keys))
        count += 1
        if count == most:
            break
    for changes in found.values():
        for start in range(0, len(changes), _MOST_CHANGES):
            await _delete(table, changes[start : start + _MOST_CHANGES])
    return count


async def _delete(table: Table, changes: list[Change]) -> None:
    try:
        await table.change(changes)
    except NotFoundError:  # another instance deletes, too, and a transaction is all or none
        for change in changes:
            await table.delete(change.entity["PartitionKey"], change.entity["RowKey"])
