"""What readers of a run see of a sub-agent at work: tools, turns, counts. Never what was read or found.

Telling is a courtesy: that the log is out of reach costs no turn. That the run has ended is no failure of the
log: it ends the sub-agent.
"""

from typing import Any, Literal

from shared.platform.errors import GroundworkError, NotFoundError
from shared.platform.telemetry import get_logger
from shared.runs.event_log import EventLog, RunClosedError, join_event_log
from shared.runs.events import RunEvent, SubagentStatus, ToolResultEvent, ToolStartedEvent
from shared.runs.models import ToolUse
from shared.runs.run_log import RunLog
from shared.subagents.models import SubagentState, TurnInput

_MAX_ARGUMENT_CHARS = 200  # of what a model wrote: readers see what it is after, not more

Phase = Literal["started", "turn", "artifact", "failed", "ended"]


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
