"""Executes the tool calls of the main agent's previous turn, at the beginning of its next turn.

The script itself performs some calls: questions to the user, delegations, and web calls that need the user's
consent. Their results come from the journal.
"""

import json
from collections.abc import Sequence

from shared.answering.delegation_results import call_result
from shared.answering.lookups import TurnLookup
from shared.answering.models import ScriptCallResult, Turn
from shared.answering.prompt import documents_xml
from shared.answering.script_calls import answer_result, script_call
from shared.answering.step_context import StepContext
from shared.answering.turn_question import TurnQuestion, collected_once
from shared.answering.web_consent import consent_result, uses_web
from shared.conversations.window import conversation_element
from shared.runs.event_log import EventLog
from shared.runs.events import warning_events
from shared.runs.step_time import StepTime
from shared.tools.ask_user import AskUserParameters
from shared.tools.outside import Outside, outside_of
from shared.tools.registry import OUTSIDE_TOOLS
from shared.tools.workspace_tools import reads_files


async def make_calls(
    context: StepContext,
    steps: Sequence[int],
    question: TurnQuestion,
    time: StepTime,
    event_log: EventLog,
) -> None:
    """Execute the calls of earlier turns whose results are not stored yet, and add the results to `question`.

    Args:
        steps: the steps of the earlier turns, in order.
    """
    before = question.before
    pending = list(zip(steps, before.turns, strict=True))[len(before.results) :]
    for step, turn in pending:
        lookup = TurnLookup(question, context.services, _outside(context, question), time, event_log)
        script_results = await _results_of_script(context, step, turn, question, event_log)
        results = await lookup.results_of(turn, script_results)
        before.results.append(await context.keep(results, "results", of=step))


def _outside(context: StepContext, question: TurnQuestion) -> Outside:
    """Return rules for web calls, so that text from documents which the model has read can't leak to other
    sites.
    """
    before, request, evidence = question.before, question.request, question.shown
    calls = [item for turn in before.turns for item in turn.calls]
    web_call_ids = {item.call.call_id for item in calls if item.call.name in OUTSIDE_TOOLS}
    messages = [message for results in before.results for message in results.messages]
    document_texts = [
        conversation_element(request.conversation),
        documents_xml(question.collected.evidence),
        question.collected.findings,
        *(message.text for message in messages if message.call_id not in web_call_ids),
    ]
    records = {record.doc_id: record for record in evidence.records}
    queried = (doc_id for results in before.results for doc_id in results.table_doc_ids)
    # Workspace files may contain text that earlier runs read from unknown documents.
    files = [item.call.name for item in calls if reads_files(item)]
    doc_ids = [*(hit.doc_id for hit in evidence.blocks), *queried, *records, *files]
    return outside_of(
        context.services.settings,
        own_words=[
            *(turn.question for turn in request.conversation.turns),
            request.question,
            before.choice.said,
        ],
        document_texts=document_texts,
        search_results=[url for results in before.results for url in results.found_urls],
        documents={doc_id: records.get(doc_id) for doc_id in doc_ids},
    )


async def _results_of_script(
    context: StepContext, step: int, turn: Turn, question: TurnQuestion, event_log: EventLog
) -> dict[str, ScriptCallResult]:
    """Return results for those calls of a turn that the script performs instead of a tool, by call id."""
    before = question.before
    if turn.asks_consent:
        return _results_of_consent(turn, granted=bool(before.web_allowed))
    if (pending := script_call(turn)) is None:
        return {}
    call_id, arguments = pending[0].call.call_id, pending[1]
    if isinstance(arguments, AskUserParameters):
        return {call_id: answer_result(arguments, before.choice)}
    refused = await context.journal.find(step, ScriptCallResult, "refused")
    return {call_id: refused or await _result_of_delegation(context, step, question, event_log)}


async def _result_of_delegation(
    context: StepContext, step: int, question: TurnQuestion, event_log: EventLog
) -> ScriptCallResult:
    """Return the results of a step's sub-agents that the user may read, and add them to the question's
    evidence.
    """
    evidence = question.shown
    collected = await collected_once(context, step, evidence)
    documents = await context.searches.readable(collected.doc_ids, question.request)
    collected = collected.only_readable(documents)
    question.join(collected)
    if collected.warnings:
        await event_log.write(*warning_events(collected.warnings))
    block_ids = {hit.block_id for hit in evidence.blocks}
    return ScriptCallResult(
        text=call_result(collected, block_ids),
        hits=tuple(hit for hit in collected.evidence.hits if hit.block_id not in block_ids),
        records=collected.evidence.records,
    )


def _results_of_consent(turn: Turn, *, granted: bool) -> dict[str, ScriptCallResult]:
    """Return results for the web calls that must not be made now. If consent was denied, these are all web
    calls; if granted, only a delegation, because the next turn requests it again.
    """
    pending = script_call(turn)
    delegations = [pending[0]] if pending else []
    calls = delegations if granted else [call for call in turn.calls if uses_web(call)]
    text = json.dumps(consent_result(granted=granted))
    return {call.call.call_id: ScriptCallResult(text=text) for call in calls}
