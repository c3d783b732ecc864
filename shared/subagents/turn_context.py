"""The context of one turn of a sub-agent: its task, its state, its remaining budget, its events.

Events show readers tools, turns and counts, never what was read or found. A log that cannot be reached costs
no turn; a run that has ended ends the sub-agent.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Literal

from shared.platform.errors import GroundworkError, NotFoundError
from shared.platform.language_models.models import ModelUsage
from shared.platform.prompts import load, render
from shared.platform.search import Filters
from shared.platform.telemetry import get_logger
from shared.retrieval.models import DocumentRecord, Hit
from shared.runs.event_log import EventLog, RunClosedError, join_event_log
from shared.runs.events import RunEvent, SubagentStatus, ToolResultEvent, ToolStartedEvent
from shared.runs.models import RunRequest, SubagentTool, ToolUse
from shared.runs.run_log import RunLog
from shared.subagents.artifacts import ChildStore
from shared.subagents.budget import Prices, Spent
from shared.subagents.models import ChildTranscript, SubagentState, SubagentTask, TurnInput, WarningCode
from shared.subagents.profiles import PROFILES, Profile
from shared.subagents.services import SubagentServices

_MAX_ARGUMENT_CHARS = 200  # of what a model wrote: readers see what it is after, not more
Phase = Literal["started", "turn", "artifact", "failed", "ended"]
_MAX_HITS = 80  # more than any token budget lets a model read; keeps the state small


class ChildEvents:
    """Tells of one turn. Every method raises RunClosedError, and nothing else."""

    def __init__(self, event_log: EventLog | None, turn: TurnInput) -> None:
        self._event_log = event_log
        self._turn = turn

    async def phase(
        self,
        phase: Phase,
        state: SubagentState,
        *,
        error_type: str | None = None,
        status: str | None = None,
    ) -> None:
        """A `status` with counts."""
        await self._write(
            SubagentStatus(
                phase=phase,
                turn=self._turn.turn,
                passages=len(state.hits),
                findings=len(state.findings),
                proved=sum(bool(finding.proofs) for finding in state.findings),
                error_type=error_type,
                status=status,
            )
        )

    async def tool_started(self, tool: str, arguments: dict[str, Any]) -> None:
        """A tool is called."""
        shown = {name: _shown(value) for name, value in arguments.items()}
        await self._write(ToolStartedEvent(tool=tool, arguments=shown))

    async def tool_ended(self, use: ToolUse) -> None:
        """A tool has answered, or was refused."""
        await self._write(
            ToolResultEvent(
                tool=use.tool,
                success=use.success,
                result_count=use.result_count,
                error_type=use.error_type or None,
            )
        )

    async def _write(self, event: RunEvent) -> None:
        if self._event_log is None:
            return
        try:
            await self._event_log.write(event)
        except RunClosedError:
            raise
        except NotFoundError:
            raise RunClosedError("The log of the run is gone.") from None
        except GroundworkError as failed:
            get_logger().warning("sub_agent.untold", run_id=self._turn.run_id, error_type=failed.code)


async def open_events(log: RunLog, turn: TurnInput) -> ChildEvents:
    """Events of one turn.

    Raises:
        RunClosedError: the run has ended, or was erased.
    """
    try:
        event_log = await join_event_log(log, turn.run_id, turn.step, turn.index, turn.profile)
    except RunClosedError:
        raise
    except NotFoundError:
        raise RunClosedError("The log of the run is gone.") from None
    except GroundworkError as failed:
        get_logger().warning("sub_agent.untold", run_id=turn.run_id, error_type=failed.code)
        return ChildEvents(None, turn)
    return ChildEvents(event_log, turn)


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_MAX_ARGUMENT_CHARS]
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value[:10]]
    return value if isinstance(value, int | float | bool) else None


class TurnContext:
    """One turn's work. `state` and `transcript` are replaced as it goes on, and stored by `keep`."""

    def __init__(
        self,
        services: SubagentServices,
        turn: TurnInput,
        task: SubagentTask,
        request: RunRequest,
        stored: tuple[ChildStore, SubagentState],
    ) -> None:
        """`stored`: what was read from the store, or how a sub-agent begins."""
        self.services = services
        self.turn = turn
        self.task = task
        self.request = request
        self.store, self.state = stored
        self.transcript = ChildTranscript()
        self.events = ChildEvents(None, turn)
        self.prices = Prices(
            services.settings.models.input_usd_per_million_tokens,
            services.settings.models.output_usd_per_million_tokens,
        )

    @property
    def profile(self) -> Profile:
        """The one in force: the task's, or a smaller one that took over."""
        return PROFILES[self.turn.profile]

    @property
    def system(self) -> str:
        """The profile's prompt."""
        return render(load("subagents", self.profile.name), {"rules": load("subagents", "rules")})

    @property
    def tools(self) -> tuple[SubagentTool, ...]:
        """What it may use: of the task's tools those that are the profile's, and that there are."""
        allowed = [name for name in self.profile.tools if name in self.task.tools]
        return tuple(name for name in allowed if name != "web_search" or self.services.web_search)

    @property
    def remaining_s(self) -> float:
        """Seconds until the deadline; below 0 behind it."""
        return (self.task.deadline - datetime.now(UTC)).total_seconds()

    @property
    def spent(self) -> Spent:
        """What was used so far."""
        return Spent(self.state.tokens, self.state.cost_usd)

    @property
    def scope(self) -> tuple[str, ...]:
        """The documents that searches may not leave; empty = all that the asker may read."""
        chosen = self.request.doc_ids
        within = tuple(doc_id for doc_id in self.task.doc_ids if not chosen or doc_id in chosen)
        return within or chosen

    @property
    def records(self) -> dict[str, DocumentRecord]:
        """Documents known so far."""
        return {record.doc_id: record for record in self.state.records}

    @property
    def targets(self) -> list[tuple[str, str]]:
        """(doc_id, file name) of the documents that the task is about and the asker may read."""
        known = self.records
        return [(doc_id, known[doc_id].filename) for doc_id in self.task.doc_ids if doc_id in known]

    def filters(self, doc_ids: Iterable[str] = ()) -> Filters:
        """The limits of a search: the task's project, and its documents or some of them."""
        filters: Filters = {}
        if project_id := self.task.project_id or self.request.project_id:
            filters["project_id"] = project_id
        if limited := tuple(doc_ids) or self.scope:
            filters["doc_id"] = limited
        return filters

    def book(self, usage: ModelUsage) -> None:
        """Count one call of the model."""
        spent = self.spent.plus(usage, self.prices)
        self.change(tokens=spent.tokens, cost_usd=spent.cost_usd)

    def warn(self, *codes: WarningCode) -> None:
        """Note what did not go as it should, each once."""
        self.change(warnings=tuple(dict.fromkeys((*self.state.warnings, *codes))))

    def add(self, hits: Iterable[Hit], records: Iterable[DocumentRecord]) -> None:
        """Note what was found."""
        found = {hit.block_id: hit for hit in (*self.state.hits, *hits)}
        known = {record.doc_id: record for record in (*self.state.records, *records)}
        self.change(hits=tuple(found.values())[:_MAX_HITS], records=tuple(known.values())[:_MAX_HITS])

    def change(self, **values: object) -> None:
        """Replace fields of the state."""
        self.state = self.state.model_copy(update=values)

    async def keep(self) -> None:
        """Store the state as it is. StaleAttemptError: another attempt at this turn was quicker."""
        await self.store.put_state(self.state)

    async def keep_both(self) -> None:
        """The same, and the transcript after it: both are of one attempt."""
        await self.keep()
        await self.store.put_transcript(self.transcript)
