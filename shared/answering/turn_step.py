"""One turn as a step of the loop: what comes before the model speaks, and what its turn leads to.

Before the first turn the delegation policy decides whether sub-agents work on the question. A turn may end
with a question to the person, or with work for sub-agents: both are stored before the loop continues.
"""

from shared.answering.attempt import StepAttempt
from shared.answering.clarification_steps import (
    ask_user,
    expires_at,
    resume,
    resumed_before,
    with_rights,
)
from shared.answering.models import HeldResult, Preparation, Turn
from shared.answering.steps import (
    AnswerWritten,
    DelegationDeferred,
    LooksFurther,
    Observation,
    SubagentsChosen,
    TakeTurn,
)
from shared.answering.turn import TurnAttempt
from shared.answering.turn_question import (
    Before,
    TurnQuestion,
    collected_once,
    delegation_of,
    held_call,
    options_of_question,
    question_of,
)
from shared.answering.web_consent import consent_of, consent_question, is_granted
from shared.conversations.threads import keep_web_consent
from shared.evidence.reader_text import readable
from shared.runs.event_log import EventLog
from shared.runs.events import AnsweredStatus, AskUserEvent, RunEvent, events_of, warning_events
from shared.runs.evidence import Evidence, StoredPlan
from shared.runs.models import Clarification, RunRequest
from shared.runs.step_time import StepTime
from shared.subagents.delegation import DelegationOutcome, decide_delegation
from shared.subagents.policy_input import DelegationRequest
from shared.subagents.results import Collected
from shared.tools.delegate import Delegate, DelegateParameters
from shared.tools.outside import WEB_TOOLS
from shared.tools.registry import tools_of
from shared.tools.tool_calls import observation

MAX_REFUSAL_CHARS = 2000


async def known(attempt: StepAttempt, action: TakeTurn) -> Observation | None:
    """What an earlier attempt at the turn brought; None if something of it is still to be carried out."""
    stored = await attempt.memory.find(action.step, Turn, "turn")
    if stored is None or held_call(stored) is not None or stored.asks_consent:
        return None
    await attempt.show_stored(stored.answer, action.step)
    return _observed(attempt, stored)


async def take_turn(attempt: StepAttempt, action: TakeTurn) -> Observation:
    """The model's turn, or the choice of sub-agents that work on the question first."""
    taken = await attempt.memory.find(action.step, Turn, "turn") if attempt.is_repeated else None
    preparation = await attempt.memory.get(action.prepared_step, Preparation)
    before = await Before.read(attempt, action)
    request, stored = await attempt.memory.request(), preparation.stored
    first: list[RunEvent] = []
    stored = await _resumed(attempt, action, before, stored, first)
    request = request.with_rights_of(stored.asker)
    found = preparation.evidence or Evidence()
    consent = web_consent_of(attempt, request, before)
    off = WEB_TOOLS if consent is False else ()
    known = tools_of(request.agent, attempt.services.settings, has_tables=found.has_tables)
    tools = tuple(name for name in known if name not in off)
    time = attempt.time_of(request, stored)
    question = TurnQuestion(request, stored, Collected(evidence=found), tools, before, consent)
    advice = ""
    if action.delegation_step:
        question.collected = await collected_once(attempt, action.delegation_step, found)
    elif not action.earlier and taken is None and Delegate.name in tools and not found.tables:
        decided = await _delegation(attempt, question, time)
        if (chosen := _waits_for(decided)) is not None:
            await attempt.open(decided.event)
            return chosen
        first.append(decided.event)
        advice = "" if found.is_whole else decided.advice  # a sub-agent would read the same once more
    await question.join_earlier(attempt)
    taken = taken or await _allowed_delegation(attempt, action, before)
    if taken is None:
        taken, event_log = await TurnAttempt(attempt, action, question, time).take(first, advice)
    else:
        event_log = await attempt.open()
    if (call := delegation_of(taken)) is not None and not taken.asks_consent:
        decided = await _delegation(attempt, question, time, call)
        await event_log.write(decided.event)
        if (chosen := _waits_for(decided, by_model=True)) is not None:
            return chosen
        refusal = HeldResult(text=observation(decided.refusal or {}, MAX_REFUSAL_CHARS))
        await attempt.memory.put(action.step, refusal, "refused")
    await _ask(attempt, taken, event_log)
    return _observed(attempt, taken)


async def _resumed(
    attempt: StepAttempt, action: TakeTurn, before: Before, stored: StoredPlan, first: list[RunEvent]
) -> StoredPlan:
    """The plan with the rights of the person who answered; `first` gets what readers learn of that."""
    request = await attempt.memory.request()
    for step in before.asked_steps:
        is_answered_now = step == action.earlier[-1]
        resuming = resume if is_answered_now else resumed_before
        choice, resumed_at = await resuming(attempt, step)
        before.note_answer(step, choice)
        renewed = with_rights(stored, request, choice, resumed_at)
        if is_answered_now:
            first.append(AnsweredStatus.of(choice))
            first += warning_events(renewed.warnings[len(stored.warnings) :])
            if step == before.consent_step and choice.said:
                allowed = is_granted(choice)
                await keep_web_consent(request, attempt.services.threads, allowed=allowed)
        stored = renewed
    return stored


def web_consent_of(attempt: StepAttempt, request: RunRequest, before: Before) -> bool | None:
    """Return whether the web may be used; None if the person has to be asked first."""
    preset = attempt.services.settings.answering.web_consent
    return consent_of(preset, request.conversation.web_allowed, before.web_allowed)


async def _allowed_delegation(attempt: StepAttempt, action: TakeTurn, before: Before) -> Turn | None:
    """Repeat the delegation of the turn before, if it waited for the person to allow the web, and they did.

    The repeated call is this step's turn: no model is asked.
    """
    if not action.earlier or before.consent_step != action.earlier[-1] or not before.web_allowed:
        return None
    asked = before.turns[-1]
    held = held_call(asked)
    if held is None:
        return None
    call = held[0].call.model_copy(update={"call_id": f"{held[0].call.call_id}-allowed"})
    repeated = held[0].model_copy(update={"call": call})
    turn = Turn(said="", calls=(repeated,), answer=asked.answer, advice=asked.advice)
    return await attempt.memory.put(action.step, turn, "turn")


async def _ask(attempt: StepAttempt, turn: Turn, event_log: EventLog) -> None:
    """Put the question of a turn to the person, if it asks one and no earlier attempt did."""
    events = events_of(attempt.written) if attempt.written else ()
    asked = question_of(turn)
    if (asked is None and not turn.asks_consent) or any(
        isinstance(event, AskUserEvent) and event.step == attempt.action.step for event in events
    ):
        return
    if asked is not None:
        question, options = readable(asked.question.strip()), options_of_question(asked)
    else:
        question, options = consent_question(turn.calls, turn.answer.language)
    clarification = Clarification(question=question, options=options, expires_at=expires_at(attempt))
    await ask_user(attempt, await attempt.memory.request(), clarification, event_log)


async def _delegation(
    attempt: StepAttempt, question: TurnQuestion, time: StepTime, call: DelegateParameters | None = None
) -> DelegationOutcome:
    """What the policy decides on the question, or on a call of the model."""
    asked = DelegationRequest(
        question.request,
        question.stored,
        question.shown,
        step=attempt.action.step,
        repeated=attempt.is_repeated,
        tokens=attempt.tokens,
        began=time.began,
        call=call,
        web_allowed=question.web_consent is True,
    )
    return await decide_delegation(asked, attempt.memory, attempt.services)


def _waits_for(
    decided: DelegationOutcome, *, by_model: bool = False
) -> SubagentsChosen | DelegationDeferred | None:
    """What comes before the model's next turn; None if nothing does, or a refusal that it reads."""
    if decided.starts and decided.until is not None:
        return SubagentsChosen(children=decided.starts, until=decided.until, by_model=by_model)
    return None if decided.defer_s is None else DelegationDeferred(delay_s=decided.defer_s)


def _observed(attempt: StepAttempt, turn: Turn) -> Observation:
    if turn.is_last:
        return AnswerWritten(abstained=turn.answer.abstained)
    waits_s = attempt.services.settings.answering.clarification_timeout_s
    return LooksFurther(
        calls=len(turn.calls),
        gaps=len(turn.gaps),
        answer_timeout_s=waits_s if turn.asks_consent or question_of(turn) is not None else None,
    )
