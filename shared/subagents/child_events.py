"""What readers of a run see of a sub-agent at work: tools, turns, counts. Never what was read or found.

Telling is a courtesy: that the log is out of reach costs no turn. That the run has ended is no failure of the
log: it ends the sub-agent.
"""

from typing import Any, Literal

from shared.platform.errors import GroundworkError, NotFoundError
from shared.platform.telemetry import get_logger
from shared.runs.event_log import Journal, RunClosedError, join_journal
from shared.runs.events import EventName
from shared.runs.models import ToolUse
from shared.runs.run_log import RunLog
from shared.subagents.models import SubagentState, TurnInput

_MAX_ARGUMENT_CHARS = 200  # of what a model wrote: readers see what it is after, not more

Phase = Literal["started", "turn", "artifact", "failed", "ended"]


class ChildEvents:
    """Tells of one turn. Every method raises RunClosedError, and nothing else."""

    def __init__(self, journal: Journal | None, turn: TurnInput) -> None:
        self._journal = journal
        self._turn = turn

    async def phase(self, phase: Phase, state: SubagentState, **more: Any) -> None:
        """A `status` with counts."""
        await self._write(
            "STATUS",
            state="sub_agent",
            phase=phase,
            turn=self._turn.turn,
            passages=len(state.hits),
            findings=len(state.findings),
            proved=sum(bool(finding.proofs) for finding in state.findings),
            **more,
        )

    async def tool_started(self, tool: str, arguments: dict[str, Any]) -> None:
        """A tool is called."""
        shown = {name: _shown(value) for name, value in arguments.items()}
        await self._write("TOOL_STARTED", tool=tool, arguments=shown)

    async def tool_ended(self, use: ToolUse) -> None:
        """A tool has answered, or was refused."""
        data: dict[str, Any] = {"tool": use.tool, "success": use.success, "result_count": use.result_count}
        if use.error_type:
            data["error_type"] = use.error_type
        await self._write("TOOL_RESULT", **data)

    async def _write(self, name: EventName, **data: Any) -> None:
        if self._journal is None:
            return
        try:
            await self._journal.write(name, **data)
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
        journal = await join_journal(log, turn.run_id, turn.step, turn.index, turn.profile)
    except RunClosedError:
        raise
    except NotFoundError:
        raise RunClosedError("The log of the run is gone.") from None
    except GroundworkError as failed:
        get_logger().warning("sub_agent.untold", run_id=turn.run_id, error_type=failed.code)
        return ChildEvents(None, turn)
    return ChildEvents(journal, turn)


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_MAX_ARGUMENT_CHARS]
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value[:10]]
    return value if isinstance(value, int | float | bool) else None
