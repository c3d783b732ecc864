"""What a generic agent tells of its work, in the same seven events as the agent for documents."""

from collections.abc import Iterator, Sequence
from typing import Any

from shared.agents.tools.base import ToolResult
from shared.core.tool_loop import ToolLoopState
from shared.errors import GroundworkError
from shared.models.events import EventName, RunEvent
from shared.models.runs import RunAnswer
from shared.models.tool_steps import CallTools, GiveAnswer

_COUNTS = ("result_count", "count", "document_count")
_LIMIT_NOTE = "\n\n*The search for more ended at the limit of {limit}.*"
_CUT_NOTE = "\n\n*The answer was cut off at its largest length.*"


class GenericEvents:
    """Makes the events of one answer; `step` is the number of the model's turn."""

    def __init__(self, run_id: str, thread_id: str) -> None:
        self._run_id = run_id
        self._thread_id = thread_id
        self._step = 0

    def of_turn(self, state: ToolLoopState) -> Iterator[RunEvent]:
        """The model spoke: what it thinks and what it will do; nothing when that was the answer."""
        self._step = state.turns
        if state.answer is not None:
            return
        last = state.messages[-1] if state.planned else None
        yield self._event("THOUGHT", text=(last.text.strip() if last else "") or _thought(state))
        if state.planned:
            yield self._event("ACTION", kind="call_tools", tools=[item.call.name for item in state.planned])

    def started(self, step: CallTools) -> Iterator[RunEvent]:
        """One for each call that is carried out."""
        for item in step.calls:
            if item.arguments is not None:
                yield self._event("TOOL_STARTED", tool=item.call.name, arguments=item.arguments)

    def ended(self, step: CallTools, results: Sequence[ToolResult]) -> Iterator[RunEvent]:
        """One for each call, those refused included."""
        for item, result in zip(step.calls, results, strict=True):
            yield self._event("TOOL_RESULT", tool=item.call.name, **_outcome(result))

    def ask_user(self, asked: dict[str, Any]) -> RunEvent:
        """The agent waits for the person."""
        return self._event("ASK_USER", **asked)

    def complete_with_question(self, asked: dict[str, Any]) -> RunEvent:
        """The turn ends with the question; the session's next message answers it."""
        options = "\n".join(f"{number}. {option}" for number, option in enumerate(asked["options"], start=1))
        text = f"{asked['question']}\n\n{options}" if options else str(asked["question"])
        return self._complete(RunAnswer(run_id=self._run_id, text=text))

    def complete(self, step: GiveAnswer) -> RunEvent:
        """The answer."""
        notes = (_CUT_NOTE if step.truncated else "") + (
            _LIMIT_NOTE.format(limit=step.limit) if step.limit else ""
        )
        answer = RunAnswer(run_id=self._run_id, text=step.text + notes, truncated=step.truncated)
        return self._complete(answer)

    def error(self, failed: GroundworkError) -> RunEvent:
        """The end without an answer."""
        return self._event("ERROR", type=failed.code, message=failed.detail, hints=list(failed.hints))

    def _complete(self, answer: RunAnswer) -> RunEvent:
        return self._event(
            "COMPLETE",
            run_id=self._run_id,
            thread_id=self._thread_id,
            answer=answer.model_dump(mode="json", exclude={"run_id"}),
            todo=[],
        )

    def _event(self, name: EventName, **values: Any) -> RunEvent:
        return RunEvent(name=name, data={"step": self._step, **values})


def _thought(state: ToolLoopState) -> str:
    if not state.planned:
        return "Nothing that could be read; asking again."
    return f"Calling {', '.join(dict.fromkeys(item.call.name for item in state.planned))}."


def _outcome(result: ToolResult) -> dict[str, Any]:
    if not result["success"]:
        return {"success": False, "error_type": result["type"], "error": result["error"]}
    counted = next((result[name] for name in _COUNTS if name in result), None)
    return {"success": True} if counted is None else {"success": True, "result_count": counted}
