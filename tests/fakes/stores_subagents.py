"""What instances share and count of sub-agents, in memory."""

import itertools
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from shared.platform.errors import ConflictError
from shared.subagents.control import ControlState, ControlStore
from shared.subagents.metrics import MetricRecord, MetricStore


class InMemoryControlStore(ControlStore):
    """One state; whoever writes what changed meanwhile is refused."""

    def __init__(self) -> None:
        self.state = ControlState()
        self._revisions = itertools.count(1)

    async def read(self) -> ControlState:
        return self.state

    async def write(self, state: ControlState) -> ControlState:
        if state.revision != self.state.revision:
            raise ConflictError("The record changed.")
        self.state = state.model_copy(update={"revision": f"revision-{next(self._revisions)}"})
        return self.state


class InMemoryMetricStore(MetricStore):
    """Records by hour, kind and key."""

    def __init__(self) -> None:
        self.records: dict[tuple[datetime, str, str], MetricRecord] = {}

    async def add(self, record: MetricRecord) -> bool:
        place = (_hour(record.at), record.kind, record.key)
        if place in self.records:
            return False
        self.records[place] = record
        return True

    async def of_hour(self, hour: datetime) -> AsyncIterator[MetricRecord]:
        for place, record in list(self.records.items()):
            if place[0] == _hour(hour):
                yield record

    async def delete_before(self, moment: datetime, most: int) -> int:
        old = [place for place in self.records if place[0] < _hour(moment)][:most]
        for place in old:
            del self.records[place]
        return len(old)


def _hour(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
