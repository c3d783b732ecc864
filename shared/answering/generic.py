"""A generic agent: a name, a system prompt and a tool set over a loop of thought, action, observation."""

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import cached_property
from typing import Any, assert_never

from shared.platform.concurrency import run_together
from shared.platform.errors import BudgetExceededError, CallTimeoutError, GroundworkError, ModelFixableError
from shared.platform.language_models.models import CallLimits, ChatModel, Message, ToolDefinition
from shared.platform.prompts import load, render
from shared.runs.events import (
    ActionEvent,
    AskUserEvent,
    CompleteEvent,
    ErrorEvent,
    RunEvent,
    ThoughtEvent,
    ToolStartedEvent,
)
from shared.runs.models import RunAnswer
from shared.tools.base import Tool
from shared.tools.execution import Called, carry_out
from shared.tools.loop import (
    AskModel,
    CallTools,
    GiveAnswer,
    GiveUp,
    LoopLimits,
    ToolLoopState,
    ToolStep,
    begin,
    next_step,
    observe_results,
    observe_silence,
    observe_turn,
)
from shared.tools.tool_calls import observation

MAX_SESSIONS = 200  # of one agent, which belongs to one user; the least recently used goes first
MAX_TURNS = 10
MAX_CHARS = 4000  # of one message: 1,300 tokens at most, so ten turns stay within half of the token limit


class SessionHistory:
    """Earlier turns by session id."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, tuple[Message, ...]] = OrderedDict()

    def of(self, session_id: str) -> tuple[Message, ...]:
        """Messages of user and assistant by turns, oldest first; none for a session that is new."""
        return self._sessions.get(session_id, ())

    def remember(self, session_id: str, question: str, answer: str) -> None:
        """Add a turn at the end; the oldest ones make room."""
        turn = (
            Message(role="user", text=question[:MAX_CHARS]),
            Message(role="assistant", text=answer[:MAX_CHARS]),
        )
        self._sessions[session_id] = (*self.of(session_id), *turn)[-2 * MAX_TURNS :]
        self._sessions.move_to_end(session_id)
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)


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
        yield ThoughtEvent(step=self._step, text=(last.text.strip() if last else "") or _thought(state))
        if state.planned:
            yield ActionEvent(
                step=self._step, kind="call_tools", tools=tuple(item.call.name for item in state.planned)
            )

    def started(self, step: CallTools) -> Iterator[RunEvent]:
        """One for each call that is carried out."""
        for item in step.calls:
            if item.arguments is not None:
                yield ToolStartedEvent(step=self._step, tool=item.call.name, arguments=item.arguments)

    def ended(self, called: Sequence[Called]) -> Iterator[RunEvent]:
        """One for each call, those refused included."""
        for one in called:
            yield one.event.model_copy(update={"step": self._step})

    def ask_user(self, asked: dict[str, Any]) -> RunEvent:
        """The agent waits for the person."""
        return AskUserEvent(step=self._step, question=asked["question"], options=tuple(asked["options"]))

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
        return ErrorEvent(step=self._step, type=failed.code, message=failed.detail, hints=tuple(failed.hints))

    def _complete(self, answer: RunAnswer) -> RunEvent:
        return CompleteEvent(step=self._step, run_id=self._run_id, thread_id=self._thread_id, answer=answer)


def _thought(state: ToolLoopState) -> str:
    if not state.planned:
        return "Nothing that could be read; asking again."
    return f"Calling {', '.join(dict.fromkeys(item.call.name for item in state.planned))}."


class GenericRun:
    """One answer. `tools` by name, bound to their user already."""

    def __init__(
        self,
        state: ToolLoopState,
        events: GenericEvents,
        *,
        tools: Mapping[str, Tool],
        definitions: Sequence[ToolDefinition],
        chat_model: ChatModel,
        limits: LoopLimits,
    ) -> None:
        self._state = state
        self._events = events
        self._tools = tools
        self._definitions = definitions
        self._chat_model = chat_model
        self._limits = limits
        self._ended = False

    async def play(self) -> AsyncGenerator[RunEvent]:
        """Its events, COMPLETE last.

        Raises:
            BudgetExceededError: a limit was reached before there was an answer.
            DependencyError, ModelFixableError: the model failed.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + self._limits.deadline_s
        while not self._ended:
            remaining_s = end - loop.time()
            async for event in self._perform(next_step(self._state, self._limits, remaining_s), remaining_s):
                yield event

    async def _perform(self, step: ToolStep, remaining_s: float) -> AsyncGenerator[RunEvent]:
        match step:
            case AskModel():
                self._state = await self._ask(step, remaining_s)
                for event in self._events.of_turn(self._state):
                    yield event
            case CallTools():
                for event in self._events.started(step):
                    yield event
                for event in self._learn(await self._call_all(step, remaining_s)):
                    yield event
            case GiveAnswer():
                self._ended = True
                yield self._events.complete(step)
            case GiveUp():
                raise BudgetExceededError(
                    f"The limit of {step.limit} was reached before there was an answer.",
                    "Ask for less at once.",
                    "The agent's author can raise its limits.",
                )
            case _:
                assert_never(step)

    async def _ask(self, step: AskModel, remaining_s: float) -> ToolLoopState:
        kept_s = self._limits.closing_s if step.may_call else 0.0
        timeout_s = max(min(self._limits.turn_timeout_s, remaining_s - kept_s), 0.001)
        limits = CallLimits(timeout_s=timeout_s, max_output_tokens=self._limits.max_output_tokens)
        try:
            turn = await self._chat_model.converse(
                step.messages, self._definitions, limits, may_call=step.may_call
            )
        except (ModelFixableError, CallTimeoutError):
            if not step.may_call:
                raise
            return observe_silence(self._state, step)
        return observe_turn(self._state, step, turn, self._limits)

    async def _call_all(self, step: CallTools, remaining_s: float) -> Sequence[Called]:
        # Time for the last turn is kept back: what tools bring is worth nothing unless it is told.
        kept_s = min(self._limits.closing_s, remaining_s / 2)
        limit_s = max(min(self._limits.tool_timeout_s, remaining_s - kept_s), 0.0)
        return await run_together(
            *(carry_out(planned, lambda name, _: self._tools[name], limit_s) for planned in step.calls)
        )

    def _learn(self, called: Sequence[Called]) -> list[RunEvent]:
        most = self._limits.max_observation_chars
        self._state = observe_results(self._state, [observation(one.result, most) for one in called])
        told = list(self._events.ended(called))
        asked = self._question_to_user(called)
        if asked is None:
            return told
        self._ended = True
        return [*told, self._events.ask_user(asked), self._events.complete_with_question(asked)]

    def _question_to_user(self, called: Sequence[Called]) -> dict[str, Any] | None:
        for one in called:
            tool = self._tools.get(one.planned.call.name)
            if tool is not None and tool.waits_for_user and one.result["success"]:
                return {"question": one.result["question"], "options": one.result["options"]}
        return None


class GenericAgent:
    """Answers by calling tools, which are bound to its user already; remembers its sessions."""

    def __init__(
        self, name: str, system_prompt: str, tools: Sequence[Tool], chat_model: ChatModel, limits: LoopLimits
    ) -> None:
        """`system_prompt`: what the agent is for, in its owner's words; text, no template."""
        self._tools = {tool.name: tool for tool in tools}
        self._chat_model = chat_model
        self._limits = limits
        self._sessions = SessionHistory()
        self._system = render(
            load("answering", "generic"),
            {
                "name": name,
                "instructions": system_prompt.strip(),
                "tools": ", ".join(self._tools) or "none",
            },
        )

    @cached_property
    def _definitions(self) -> tuple[ToolDefinition, ...]:
        """Made with the first answer, 0.4 ms a tool: many agents are made for one question or none."""
        return tuple(tool.definition for tool in self._tools.values())

    async def answer(self, question: str, session_id: str | None) -> AsyncGenerator[RunEvent]:
        """The events of one answer, COMPLETE or ERROR last. No `session_id` begins a new session."""
        session = session_id or uuid.uuid4().hex
        events = GenericEvents(run_id=uuid.uuid4().hex, thread_id=session)
        run = GenericRun(
            begin(self._system, self._sessions.of(session), question, self._definitions),
            events,
            tools=self._tools,
            definitions=self._definitions,
            chat_model=self._chat_model,
            limits=self._limits,
        )
        try:
            # Closed here, so that a reader that goes away ends the model's work at once.
            async with aclosing(run.play()) as told:
                async for event in told:
                    if isinstance(event, CompleteEvent):
                        self._sessions.remember(session, question, event.answer.text)
                    yield event
        except GroundworkError as failed:
            yield events.error(failed)
