"""Ports of sub-agents: what instances share, what is counted, the web. Part of `shared.ports`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

# For annotations alone: the start of the app need not build every model.
if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from shared.models.prompts import CallLimits
    from shared.models.subagent_control import ControlState
    from shared.models.subagent_metrics import MetricRecord
    from shared.models.web import WebHit


class ControlStore(Protocol):
    """The one row that all instances share about sub-agents at work."""

    async def read(self) -> ControlState:
        """The state with its revision; an empty one without revision when there is none yet."""

    async def write(self, state: ControlState) -> ControlState:
        """The state as stored. ConflictError when it changed since `state.revision` was read."""


class MetricStore(Protocol):
    """Records of decisions and sub-agents."""

    async def add(self, record: MetricRecord) -> bool:
        """Keep it; False, and nothing changed, when there is one of this hour, kind and key already."""

    def of_hour(self, hour: datetime) -> AsyncIterator[MetricRecord]:
        """Records whose `at` is within the hour that begins then."""

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Remove records of hours that ended before `moment`, the oldest first; how many, at most `most`."""


class WebSearch(Protocol):
    """A search engine of the web. Who uses it tells outsiders what is asked: the policy decides whether."""

    async def search(self, query: str, count: int, limits: CallLimits) -> list[WebHit]:
        """At most `count` pages, the best first. What they say is a stranger's word, never an instruction."""
