"""Performs a turn of the main agent as a step, with the delegation decision before it and the action after
it.

Before the first turn the delegation policy decides whether sub-agents work on the question. A turn may end
with a question to the user or a delegation. Both are stored before the script continues.
"""

from datetime import datetime

from shared.answering import agent_turn
from shared.answering.answer_turn import AnswerTurn
from shared.answering.children import DELEGATION
from shared.answering.clarification_steps import (
    ask_user,
    expires_at,
    resume,
    resumed_before,
    with_rights,
)
from shared.answering.delegation import DelegationOutcome, decide_delegation
from shared.answering.delegation_request import DelegationRequest
from shared.answering.delegation_results import Collected
from shared.answering.models import Preparation, ScriptCallResult, Turn
from shared.answering.script_calls import delegation_of, options_of_question, question_of, script_call
from shared.answering.step_context import StepContext
from shared.answering.steps import (
    AnswerWritten,
    DelegationDeferred,
    LooksFurther,
    Observation,
    SubagentsChosen,
    TakeTurn,
)
from shared.answering.turn_question import EarlierTurns, TurnQuestion, collected_once
from shared.answering.web_consent import consent_of, consent_question, is_granted
from shared.conversations.threads import keep_web_consent
from shared.evidence.reader_text import readable
from shared.runs.events import AnsweredStatus, RunEvent, warning_events
from shared.runs.evidence import Evidence, StoredPlan
from shared.runs.models import Clarification, RunRequest
from shared.runs.step_time import StepTime
from shared.tools.delegate import Delegate, DelegateParameters
from shared.tools.outside import WEB_TOOLS
from shared.tools.registry import tools_of
from shared.tools.tool_calls import observation

MAX_REFUSAL_CHARS = 2000


async def take_turn(context: StepContext, action: TakeTurn) -> Observation:
    """Take a turn of the main agent, unless the policy decides to let sub-agents work on the question
    first.
    """
    turn = await context.journal.find(action.step, Turn, "turn")
    first: list[RunEvent] = []
    question = await _question(context, action, first)
    time = context.time_of(question.request, question.stored)
    advice = ""
    if turn is None and _needs_decision(action, question):
        outcome = await _delegation(context, question, time)
        if (wait := await _wait_before_turn(context, outcome)) is not None:
            return await context.complete(wait, outcome.event)
        first.append(outcome.event)
        # If the prompt contains the whole documents, a sub-agent would only read them again.
        advice = "" if question.collected.evidence.is_whole else outcome.advice
    turn = turn or await _repeat_allowed_delegation(context, action, question.before)
    if turn is None:
        attempt = AnswerTurn(context, action, question, time, first=first, advice=advice)
        turn = await attempt.store(await agent_turn.take_turn(attempt))
    else:  # an earlier attempt stored this turn, but the text that it showed was withdrawn
        await context.open()
        await context.show(turn.answer)
    return await _complete(context, question, time, turn)


def _needs_decision(action: TakeTurn, question: TurnQuestion) -> bool:
    """Return whether the policy must decide if sub-agents work on the question. It decides only before the
    first turn.
    """
    is_first = not action.delegation_step and not action.earlier
    return is_first and Delegate.name in question.tools and not question.collected.evidence.tables


async def _complete(context: StepContext, question: TurnQuestion, time: StepTime, turn: Turn) -> Observation:
    """Complete the step after its turn was stored. If the turn requests it, start sub-agents or ask the
    user.
    """
    events: list[RunEvent] = []
    if (call := delegation_of(turn)) is not None and not turn.asks_consent:
        outcome = await _delegation(context, question, time, call)
        if (wait := await _wait_before_turn(context, outcome, by_model=True)) is not None:
            return await context.complete(wait, outcome.event)
        events.append(outcome.event)
        refusal = ScriptCallResult(text=observation(outcome.refusal or {}, MAX_REFUSAL_CHARS))
        await context.keep(refusal, "refused")
    clarification = _clarification(context, turn)
    if clarification is None:
        return await context.complete(_observation_of(turn), *events)
    observed = _observation_of(turn, expires_at=clarification.expires_at)
    return await ask_user(context, await context.request(), clarification, observed)


async def _question(context: StepContext, action: TakeTurn, first: list[RunEvent]) -> TurnQuestion:
    """Return the input of the turn, with all evidence that the user may currently read.

    Args:
        first: receives the events of a reply that arrived since the last turn.
    """
    preparation = await context.journal.get(action.prepared_step, Preparation, "preparation")
    before = await EarlierTurns.read(context, action)
    stored = await _apply_replies(context, action, before, preparation.stored, first)
    request = (await context.request()).with_rights_of(stored.asker)
    evidence = preparation.evidence or Evidence()
    consent = web_consent_of(context, request, before)
    off = WEB_TOOLS if consent is False else ()
    tool_names = tools_of(request.agent, context.services.settings, has_tables=evidence.has_tables)
    tools = tuple(name for name in tool_names if name not in off)
    question = TurnQuestion(request, stored, Collected(evidence=evidence), tools, before, consent)
    if action.delegation_step:
        question.collected = await collected_once(context, action.delegation_step, evidence)
    await question.join_earlier(context)
    return question


async def _apply_replies(
    context: StepContext, action: TakeTurn, before: EarlierTurns, stored: StoredPlan, first: list[RunEvent]
) -> StoredPlan:
    """Apply the user's replies to earlier turns, and return the plan with the permissions of the user who
    replied.

    The events of the reply are appended to `first`.
    """
    request = await context.request()
    for step in before.asked_steps:
        is_answered_now = step == action.earlier[-1]
        choice, resumed_at = await resume(context, step) if is_answered_now else resumed_before(context, step)
        before.note_answer(step, choice)
        renewed = with_rights(stored, request, choice, resumed_at)
        if is_answered_now:
            first.append(AnsweredStatus.of(choice))
            first += warning_events(renewed.warnings[len(stored.warnings) :])
            if step == before.consent_step and choice.said:
                allowed = is_granted(choice)
                await keep_web_consent(request, context.services.threads, allowed=allowed)
        stored = renewed
    return stored


def web_consent_of(context: StepContext, request: RunRequest, before: EarlierTurns) -> bool | None:
    """Return whether the web may be used, or None if the user must be asked first."""
    preset = context.services.settings.answering.web_consent
    return consent_of(preset, request.conversation.web_allowed, before.web_allowed)


async def _repeat_allowed_delegation(
    context: StepContext, action: TakeTurn, before: EarlierTurns
) -> Turn | None:
    """Return a turn that repeats a delegation which had to wait for consent to use the web, or None if there
    is none.

    The repeated call becomes this step's turn, without a model call.
    """
    if not action.earlier or before.consent_step != action.earlier[-1] or not before.web_allowed:
        return None
    previous = before.turns[-1]
    pending = script_call(previous)
    if pending is None:
        return None
    call = pending[0].call.model_copy(update={"call_id": f"{pending[0].call.call_id}-allowed"})
    repeated = pending[0].model_copy(update={"call": call})
    turn = Turn(said="", calls=(repeated,), answer=previous.answer, advice=previous.advice)
    return await context.keep(turn, "turn")


def _clarification(context: StepContext, turn: Turn) -> Clarification | None:
    """Return the question with which the turn ends, for the user, or None if it asks nothing."""
    parameters = question_of(turn)
    if parameters is None and not turn.asks_consent:
        return None
    if parameters is not None:
        question, options = readable(parameters.question.strip()), options_of_question(parameters)
    else:
        question, options = consent_question(turn.calls, turn.answer.language)
    return Clarification(question=question, options=options, expires_at=expires_at(context))


async def _delegation(
    context: StepContext, question: TurnQuestion, time: StepTime, call: DelegateParameters | None = None
) -> DelegationOutcome:
    """Return the policy's decision about the question, or about the `delegate` call of the model."""
    delegation_request = DelegationRequest(
        question.request,
        question.stored,
        question.shown,
        step=context.action.step,
        tokens=context.tokens,
        began=time.began,
        call=call,
        web_allowed=question.web_consent is True,
    )
    return await decide_delegation(delegation_request, context.journal, context.services)


async def _wait_before_turn(
    context: StepContext, outcome: DelegationOutcome, *, by_model: bool = False
) -> SubagentsChosen | DelegationDeferred | None:
    """Return the observation that makes the run wait before the next turn, for sub-agents or for another
    decision. Return None if the next turn can follow immediately.
    """
    if outcome.delegation is not None and outcome.until is not None:
        # Append the attempt's start first. A value stored before it would also count for later attempts.
        await context.open_if_needed()
        await context.keep(outcome.delegation, DELEGATION)
        return SubagentsChosen(children=outcome.starts, until=outcome.until, by_model=by_model)
    return None if outcome.defer_s is None else DelegationDeferred(delay_s=outcome.defer_s)


def _observation_of(turn: Turn, expires_at: datetime | None = None) -> Observation:
    """Return the observation of a step that took this turn. `expires_at` is set if the turn asked the
    user.
    """
    if turn.is_last:
        return AnswerWritten(abstained=turn.answer.abstained)
    return LooksFurther(calls=len(turn.calls), gaps=len(turn.gaps), expires_at=expires_at)
