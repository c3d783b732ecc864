"""Takes a turn of a sub-agent, which calls tools or writes its report of findings."""

from collections.abc import Sequence

from shared.answering.agent_turn import ModelCall
from shared.answering.budget import LEAST_CHARS_PER_TOKEN, BudgetSpentError, max_tokens_of
from shared.answering.calls import CallMaker, calls_left, planned_calls
from shared.answering.opening import open_task
from shared.answering.report_stream import write_report
from shared.answering.subagent_budget import result_tokens, tool_limit_s, work_limits
from shared.answering.subagent_context import SubagentContext
from shared.answering.subagent_models import (
    TurnStatus,
)
from shared.platform.errors import (
    CallTimeoutError,
    DependencyError,
    GroundworkError,
    ModelFixableError,
)
from shared.platform.language_models.models import ChatModel, Message, ModelTurn, ModelUsage
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.models import ToolUse
from shared.tools.base import ToolEvidence
from shared.tools.execution import Called
from shared.tools.registry import TOOLS
from shared.tools.tool_calls import PlannedCall

# Minimum length of a tool result in the prompt.
_LEAST_CHARS = 400
# Types of temporary errors, after which a retry may succeed.
_PASSING = frozenset({"NetworkError", "RateLimitError"})
# Maximum length of the model text that is kept alongside its tool calls.
_MAX_SAID_CHARS = 600


class SearchFailedError(DependencyError):
    """Raised when a search of a sub-agent fails and a retry may succeed."""

    def __init__(self, failed: GroundworkError | None = None) -> None:
        super().__init__(failed.detail if failed else "A search of a sub-agent failed.")
        if failed is not None:
            self.retryable = failed.retryable and not isinstance(failed, CallTimeoutError)
            self.code = failed.code


class ReportTurn:
    """An attempt at one turn of a sub-agent. Implements the callbacks of `agent_turn.take_turn`."""

    def __init__(self, context: SubagentContext) -> None:
        self._context = context
        self._prompt_tokens = 0

    @property
    def chat_model(self) -> ChatModel:
        """The chat model, whose usage is charged to the user of the run."""
        return self._context.services.chat_model

    async def begin(self) -> None:
        """Retrieve the initial passages on the first turn, and execute the tool calls that the previous turn
        requested.

        Raises:
            SearchFailedError: a search or a call failed. The second attempt executes all calls again.
        """
        context = self._context
        if not context.state.is_opened:
            try:
                await open_task(context)
            except GroundworkError as failed:
                raise SearchFailedError(failed) from None
            context.update_state(is_opened=True)
            await context.store_state()
        if context.state.planned:
            await self._make_calls()

    async def model_call(self) -> ModelCall | None:
        """Return the input of the model call. Return None if the report is due, because no more tool calls
        are possible or the budget only covers the report.
        """
        context = self._context
        tools = [context.bind(name, ToolEvidence()).definition for name in context.tools]
        is_due = context.turn.closing or context.state.is_covered
        if is_due or not tools or calls_left(context.call_rules, context.state.made) <= 0:
            return None
        messages = _messages(context)
        texts = [*map(_text_of, messages), *(tool.model_dump_json() for tool in tools)]
        self._prompt_tokens = max_tokens_of(texts)
        try:
            limits = work_limits(context.budget, self._prompt_tokens, context.remaining_s)
        except BudgetSpentError:
            return None
        return ModelCall(messages, tools, limits)

    async def receive_text(self, text: str) -> None:
        """Ignore the text, because only the tool calls and the report of a sub-agent are used."""

    async def plan_calls(self, turn: ModelTurn) -> TurnStatus | None:
        """Plan the tool calls that the model requested. Return None if none can be executed, so that the
        report is due.
        """
        context, state = self._context, self._context.state
        output_tokens = max_tokens_of([turn.text, *(call.arguments for call in turn.tool_calls)])
        read = self._prompt_tokens if turn.tokens is None else max(turn.tokens - output_tokens, 0)
        context.add_usage(turn.usage or ModelUsage(input_tokens=read, output_tokens=output_tokens))
        planned = planned_calls(context.call_rules, turn.tool_calls, context.tools, state.made)
        for refused in planned:
            await _send_refusal(context, refused)
        if not any(item.refused is None for item in planned) or not _result_room(context):
            return None
        calls = tuple(item.call for item in planned)
        message = Message(role="assistant", text=turn.text[:_MAX_SAID_CHARS], tool_calls=calls)
        context.update_state(messages=(*state.messages, message), planned=planned)
        return "go_on"

    async def finish(self, turn: ModelTurn | None) -> TurnStatus:
        """Have the model write the report from the evidence collected so far."""
        return await write_report(self._context)

    async def recover(self, error: GroundworkError) -> TurnStatus:
        """Have the model write the report after a timeout or an invalid reply. Raise other errors, which
        suggest that the model is unavailable.

        Raises:
            GroundworkError: `error`, if it is neither a timeout nor an invalid reply.
        """
        if not isinstance(error, CallTimeoutError | ModelFixableError):
            raise error
        # Assume that the failed call was billed, and use the rest of the budget for the report.
        self._context.add_usage(ModelUsage(input_tokens=self._prompt_tokens, output_tokens=0))
        self._context.add_warnings("MODEL_FAILED")
        return await self.finish(None)

    async def _make_calls(self) -> None:
        context = self._context
        maker = _maker(context)
        outcomes, _ = await maker.make(context.state.planned)
        uses = [_use(context, one) for one in outcomes if one.planned.refused is None]
        context.update_state(tool_uses=(*context.state.tool_uses, *uses))
        has_failed = any(one.result.get("type") in _PASSING for one in outcomes)
        if has_failed and not context.turn.attempt:
            raise SearchFailedError
        if any(one.result.get("type") == CallTimeoutError.code for one in outcomes):
            context.add_warnings("TOOL_FAILED")
        context.add_results(await maker.render(outcomes))
        await context.store_state()
        if has_failed:
            raise SearchFailedError


def _maker(context: SubagentContext) -> CallMaker:
    state, services = context.state, context.services
    limit_s = tool_limit_s(context.remaining_s, services.settings.answering.retrieval_timeout_s)
    room = _result_room(context) // max(len(state.planned), 1)
    return CallMaker(
        context.call_rules,
        bind=context.bind,
        send=context.send,
        limit_s=lambda _: limit_s,
        documents=DocumentSearch(
            SecuredIndex(services.documents_index, context.request.user, services.documents)
        ),
        describe_s=limit_s,
        max_chars=max(room * LEAST_CHARS_PER_TOKEN, _LEAST_CHARS),
        shown={hit.block_id for hit in state.hits},
        records=context.records,
    )


def _use(context: SubagentContext, call: Called) -> ToolUse:
    result = call.result
    return ToolUse(
        turn=context.turn.turn,
        tool=call.planned.call.name,
        success=result["success"],
        result_count=call.count or 0,
        duration_ms=call.duration_ms,
        error_type=None if result["success"] else result["type"],
    )


async def _send_refusal(context: SubagentContext, item: PlannedCall) -> None:
    """Send an event about a refused call. Calls of tools that don't exist are not reported."""
    if item.refused is None or item.call.name not in TOOLS:
        return
    called = Called(item, item.refused.result)
    context.update_state(tool_uses=(*context.state.tool_uses, _use(context, called)))
    await context.send([called.event])


def _messages(context: SubagentContext) -> Sequence[Message]:
    opening = context.state.hits[: context.state.opening_count]
    return (
        Message(role="system", text=context.system),
        Message(role="user", text=context.message(opening)),
        *context.state.messages,
    )


def _text_of(message: Message) -> str:
    return message.text + "".join(call.name + call.arguments for call in message.tool_calls)


def _result_room(context: SubagentContext) -> int:
    report_tokens = max_tokens_of(map(_text_of, _messages(context)))
    return result_tokens(context.budget, report_tokens)
