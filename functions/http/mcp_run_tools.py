"""MCP tools that ask questions and wait for their answers.

A run may outlast the tool call: if the answer takes long, `ask` returns the id of the run, and repeating the
question within ten minutes joins the same run.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import urljoin

from pydantic import Field

from functions.http.event_stream import NamedFrame, closer, follow_named
from functions.http.mcp_tool import McpCall, McpTool, Progress
from functions.http.questions import Question, begin_question, deliver_answer, view_at_end, view_of
from functions.http.requests import count_call
from shared.answering.agent_files import agents_for
from shared.answering.runs import view_run
from shared.platform.hashing import digest
from shared.runs.agents import AGENT_NAME
from shared.runs.models import ID_PATTERN, MAX_ANSWER_CHARS, ChatRequest, ClarificationAnswer, RunView
from shared.runs.portable_text import portable_text
from shared.runs.run_store import owned_run
from shared.tools.base import Parameters, ToolResult

ANSWER_WITHIN_S = 25.0  # MCP clients time out after 30 to 60 s
SAME_QUESTION_HOLDS = timedelta(minutes=10)
_CITED = {
    *("n", "kind", "filename", "page_number", "quote", "verified", "fetched_at"),
    *("sql", "sql_in_words", "columns", "rows", "row_count"),
}
_PROGRESS = {
    "ACTION": "Planning",
    "TOOL_STARTED": "Reading the documents",
    "TOKEN": "Writing the answer",
    "ASK_USER": "Asking which document is meant",
}


class AskParameters(Parameters):
    """Arguments of the tool `ask`."""

    question: str = Field(min_length=1, description="The question, in any language.")
    thread_id: str | None = Field(
        default=None,
        pattern=ID_PATTERN,
        description="Thread id of an earlier answer, to continue that conversation.",
    )
    agent: str | None = Field(
        default=None,
        pattern=AGENT_NAME,
        description="Name of the agent to ask. By default, all documents are searched.",
    )


class Ask(McpTool):
    """Tool that asks a question and waits for the answer. If that takes too long, it returns the id of the
    run instead.
    """

    name = "ask"
    description = (
        "Ask a question about the organisation's documents. Returns an answer whose quotations were checked "
        "against the documents, with the page of each. If `status` is `running`, call `get_answer` with its "
        "run_id. If it is `waiting`, put `clarification` to the person and call `reply` with their answer."
    )
    parameters = AskParameters
    waits = True

    @classmethod
    def description_for(cls, call: McpCall) -> str:
        """Return the description of the tool, followed by the agents that the caller may use."""
        agents = agents_for(call.user, call.services.settings, "mcp")
        agent_list = " ".join(f"{agent.name}: {agent.description.rstrip('.')}." for agent in agents)
        return f"{cls.description} Agents: {agent_list}" if agents else cls.description

    async def _run(self, arguments: AskParameters) -> ToolResult:
        view, is_repeat = await self._start_or_join(arguments, SAME_QUESTION_HOLDS)
        if is_repeat and view.status in ("failed", "cancelled"):
            view, _ = await self._start_or_join(arguments, timedelta(0))
        return _outcome(view, self._call)

    async def _start_or_join(self, arguments: AskParameters, holds: timedelta) -> tuple[RunView, bool]:
        """Start a run, or join the run of an identical recent call. Return the run, and whether an earlier
        call started it.
        """
        call = self._call
        chat = ChatRequest(question=arguments.question, thread_id=arguments.thread_id, agent=arguments.agent)
        key = f"mcp-{digest(arguments.model_dump_json())}"
        now = datetime.now(UTC)
        question = Question(
            call.request, chat, call.user, call.services, call.client, now, key, holds, channel="mcp"
        )
        run_id, first_slice = await begin_question(question)
        events = _with_progress(question.events(run_id, first_slice, ANSWER_WITHIN_S), call.progress)
        return await view_at_end(events, partial(view_of, run_id, question)), first_slice is None


class GetAnswerParameters(Parameters):
    """Arguments of the tool `get_answer`."""

    run_id: str = Field(pattern=ID_PATTERN, description="Run id that `ask` returned.")


class GetAnswer(McpTool):
    """Tool that waits for the answer of a run that an earlier call of `ask` started."""

    name = "get_answer"
    description = "The answer to an earlier question, by its run_id; waits for a while."
    parameters = GetAnswerParameters
    waits = True

    async def _run(self, arguments: GetAnswerParameters) -> ToolResult:
        call, run_id = self._call, arguments.run_id
        services = call.services
        await count_call(call.request, call.user, services)
        view = await _view_of(run_id, call)
        if view.status == "running":
            revive = closer(call.client, run_id, services)
            events = follow_named(services.run_log, run_id, 0, ANSWER_WITHIN_S, revive)
            view = await view_at_end(_with_progress(events, call.progress), partial(_view_of, run_id, call))
        return _outcome(view, call)


class ReplyParameters(Parameters):
    """Arguments of the tool `reply`."""

    run_id: str = Field(pattern=ID_PATTERN, description="Id of the run that waits for the clarification.")
    answer: str = Field(
        min_length=1,
        max_length=MAX_ANSWER_CHARS,
        pattern=r"\S",
        description="The user's answer: the number of an option, or free text.",
    )


class Reply(McpTool):
    """Tool that answers the clarification question of a waiting run, then waits for the run's answer."""

    name = "reply"
    description = (
        "Answer the `clarification` of a run whose `status` is `waiting`, and get its answer. Pass on what "
        "the person said; never decide for them, least of all whether the web may be used."
    )
    parameters = ReplyParameters
    waits = True

    async def _run(self, arguments: ReplyParameters) -> ToolResult:
        call, run_id = self._call, arguments.run_id
        services = call.services
        await count_call(call.request, call.user, services)
        record = await owned_run(run_id, call.user, services.runs)
        log_slice = await services.run_log.read(run_id) if record.has_log else None
        answer = ClarificationAnswer(text=arguments.answer)
        await deliver_answer(record, answer, call.user, services, call.client)
        if log_slice is not None:
            revive = closer(call.client, run_id, services)
            after = len(log_slice.public)
            events = follow_named(
                services.run_log, run_id, after, ANSWER_WITHIN_S, revive, first_slice=log_slice
            )
            view = await view_at_end(_with_progress(events, call.progress), partial(_view_of, run_id, call))
        else:
            view = await _view_of(run_id, call)
        return _outcome(view, call)


async def _with_progress(
    events: AsyncGenerator[NamedFrame, None], progress: Progress | None
) -> AsyncGenerator[NamedFrame, None]:
    """Yield the events of a run unchanged, and report each change of activity to the client."""
    reported = ""
    async with aclosing(events):
        async for name, frame in events:
            activity = _PROGRESS.get(name or "", "")
            if progress and activity and activity != reported:
                await progress(activity)
                reported = activity
            yield name, frame


async def _view_of(run_id: str, call: McpCall) -> RunView:
    record = await owned_run(run_id, call.user, call.services.runs)
    return await view_run(record, call.services, call.user)


def _outcome(view: RunView, call: McpCall) -> ToolResult:
    outcome: dict[str, Any] = {"run_id": view.run_id, "thread_id": view.thread_id, "status": view.status}
    if view.answer is not None:
        outcome |= {
            "answer": portable_text(view.answer),
            "abstained": view.answer.abstained,
            "citations": [
                {
                    **cited.model_dump(mode="json", include=_CITED),
                    "url": urljoin(call.address, cited.url) if cited.url else "",
                }
                for cited in view.answer.citations
            ],
        }
    if view.clarification is not None:
        outcome["clarification"] = {
            "question": view.clarification.question,
            "options": [option.name for option in view.clarification.options],
        }
    return outcome | ({"error": view.error, "error_type": view.error_type} if view.error else {})
