"""A turn of work: the model says what to look for, and it is looked for. Without calls the report is due.

What the model said is stored before its calls are made, and each result as it is there: a turn that is taken
again after a crash or a failing search asks for what is missing, and pays for nothing twice.
"""

from collections.abc import Sequence

from shared.agents.sub_agents.desk import Desk
from shared.agents.sub_agents.tools import ChildTools, Outcome
from shared.core.subagent_budget import (
    allowed_work,
    can_look_further,
    result_tokens,
    tokens_of,
    work_limit_s,
)
from shared.core.subagent_passages import task_message
from shared.core.tool_calls import plan_calls, signature
from shared.errors import CallTimeoutError, DependencyError, ModelFixableError
from shared.models.conversing import Message, ModelTurn, ModelUsage
from shared.models.prompts import CallLimits
from shared.models.tool_steps import PlannedCall
from shared.retrieval.together import together

MAX_CALLS = 3  # of one turn: what the prompt says
_MAX_ARGUMENT_CHARS = 2_000  # longer ones are no search; they would be read again in every turn
_MAX_SAID_CHARS = 600  # of what a model says beside its calls


class SearchFailedError(DependencyError):
    """A search of a sub-agent failed, and may go better in a moment."""


async def look_further(desk: Desk) -> bool:
    """Let the model look for more. False when the report is due instead.

    Raises:
        SearchFailedError: a tool failed; what the others found is kept.
        DependencyError: the model could not be asked.
    """
    if not desk.transcript.planned and not await _plan(desk):
        return False
    await _carry_out(desk)
    return True


async def _plan(desk: Desk) -> bool:
    """Ask the model; whether it asked for calls that can be made."""
    turn = await _ask(desk)
    if turn is None:
        return False
    asked = [call for call in turn.tool_calls if len(call.arguments) <= _MAX_ARGUMENT_CHARS][:MAX_CALLS]
    planned = plan_calls(asked, desk.tools, desk.transcript.made, MAX_CALLS)
    for refused in planned:
        await _tell_refused(desk, refused)
    if not any(item.refused is None for item in planned) or not _result_room(desk):
        return False
    said = Message(role="assistant", text=turn.text[:_MAX_SAID_CHARS], tool_calls=tuple(asked))
    desk.transcript = desk.transcript.model_copy(
        update={"messages": (*desk.transcript.messages, said), "planned": planned, "results": ()}
    )
    await desk.keep_both()
    return True


async def _ask(desk: Desk) -> ModelTurn | None:
    """The model's turn; None when there is no room for one, or it brought nothing that could be read."""
    messages, tools = _messages(desk), ChildTools(desk).definitions
    prompt_tokens = tokens_of([*map(_text_of, messages), *(tool.model_dump_json() for tool in tools)])
    budget, spent, prices = desk.task.budget, desk.spent, desk.prices
    limit_s = work_limit_s(desk.remaining_s)
    if not tools or not limit_s:
        return None
    if not can_look_further(budget, spent, prompt_tokens, prompt_tokens, prices):
        return None
    allowed = allowed_work(budget, spent, prompt_tokens, prompt_tokens, prices)
    limits = CallLimits(timeout_s=limit_s, max_retries=0, max_output_tokens=allowed.output_tokens)
    try:
        turn = await desk.services.chat_model.converse(messages, tools, limits)
    except (CallTimeoutError, ModelFixableError):
        # It was paid for, as far as anybody knows; there is still the report.
        desk.book(ModelUsage(input_tokens=prompt_tokens, output_tokens=0))
        desk.warn("MODEL_FAILED")
        return None
    written = tokens_of([turn.text, *(call.arguments for call in turn.tool_calls)])
    desk.book(turn.usage or _estimated(turn, prompt_tokens, written))
    return turn


def _estimated(turn: ModelTurn, prompt_tokens: int, written: int) -> ModelUsage:
    if turn.tokens is None:
        return ModelUsage(input_tokens=prompt_tokens, output_tokens=written)
    return ModelUsage(input_tokens=max(turn.tokens - written, 0), output_tokens=min(written, turn.tokens))


async def _carry_out(desk: Desk) -> None:
    """Make the calls that have no result yet."""
    done = {message.call_id for message in desk.transcript.results}
    missing = [item for item in desk.transcript.planned if item.call.call_id not in done]
    tools = ChildTools(desk, _result_room(desk), len(missing))
    outcomes = await together(_call(desk, tools, item) for item in missing)
    for item, outcome in zip(missing, outcomes, strict=True):
        _note(desk, item, outcome)
    has_failed = any(outcome.may_pass for outcome in outcomes)
    if not has_failed:
        _fold(desk)
    await desk.keep_both()
    if has_failed:
        raise SearchFailedError("A search of a sub-agent failed.")


async def _call(desk: Desk, tools: ChildTools, item: PlannedCall) -> Outcome:
    if item.arguments is not None:
        await desk.events.tool_started(item.call.name, item.arguments)
    outcome = await tools.call(item)
    if outcome.use is not None and item.refused is None:
        await desk.events.tool_ended(outcome.use)
    return outcome


def _note(desk: Desk, item: PlannedCall, outcome: Outcome) -> None:
    found = outcome.found
    desk.add(found.hits, found.records)
    if outcome.use is not None and item.refused is None:
        desk.change(tool_uses=(*desk.state.tool_uses, outcome.use))
        if not outcome.use.success and outcome.use.error_type == CallTimeoutError.code:
            desk.warn("TOOL_FAILED")
    if outcome.may_pass:
        return
    known = {page.url for page in desk.transcript.pages}
    pages = [page for page in found.pages if page.url not in known]
    result = Message(role="tool", text=found.text, call_id=item.call.call_id)
    desk.transcript = desk.transcript.model_copy(
        update={
            "results": (*desk.transcript.results, result),
            "pages": (*desk.transcript.pages, *pages),
        }
    )


def _fold(desk: Desk) -> None:
    """All results are there: they become part of the conversation, in the order of their calls."""
    transcript = desk.transcript
    by_call = {message.call_id: message for message in transcript.results}
    made = [
        signature(item.call.name, item.arguments) for item in transcript.planned if item.arguments is not None
    ]
    desk.transcript = transcript.model_copy(
        update={
            "messages": (
                *transcript.messages,
                *(by_call[item.call.call_id] for item in transcript.planned),
            ),
            "made": (*transcript.made, *made),
            "planned": (),
            "results": (),
        }
    )


async def _tell_refused(desk: Desk, item: PlannedCall) -> None:
    """A refused call is seen by readers, too, unless it is for a tool that there is not."""
    if item.refused is None:
        return
    use = (await ChildTools(desk).call(item)).use
    if use is not None:
        desk.change(tool_uses=(*desk.state.tool_uses, use))
        await desk.events.tool_ended(use)


def _messages(desk: Desk) -> Sequence[Message]:
    opening = desk.state.hits[: desk.transcript.opening_count]
    task = task_message(desk.task.question, desk.targets, opening, desk.records, then="work")
    return (
        Message(role="system", text=desk.system),
        Message(role="user", text=task),
        *desk.transcript.messages,
    )


def _text_of(message: Message) -> str:
    return message.text + "".join(call.name + call.arguments for call in message.tool_calls)


def _result_room(desk: Desk) -> int:
    report_tokens = tokens_of(map(_text_of, _messages(desk)))
    return result_tokens(desk.task.budget, desk.spent, report_tokens)
