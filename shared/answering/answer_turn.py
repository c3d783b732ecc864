"""A turn of the main agent or a file agent: its output is an answer that is streamed while its quotations are
checked.

The model streams the answer, calls tools, or names gaps in its evidence. The next turn makes the calls and
searches for the gaps; the answer then continues from where it stopped.
"""

import asyncio
import json
from collections.abc import Collection, Sequence

from shared.answering.agent_turn import ModelCall, ModelFailedError
from shared.answering.answer_stream import AnswerStream
from shared.answering.answer_writer import AnswerWriter
from shared.answering.calls import planned_calls
from shared.answering.draft import Draft
from shared.answering.lookups import look_up, recomputed
from shared.answering.models import HeldResult, Turn
from shared.answering.next_questions import worth_asking
from shared.answering.number_check import NumberCheck
from shared.answering.profiles import main_profile
from shared.answering.prompt import DOCUMENT_QUESTIONS, documents_xml, first_messages
from shared.answering.quote_repair import QuoteRepairer
from shared.answering.results import call_result
from shared.answering.run_facts import writing_facts
from shared.answering.script import retry_delay_s
from shared.answering.statements import from_first_gap, read_gaps, split_turn
from shared.answering.step_context import StepContext
from shared.answering.steps import (
    TakeTurn,
    step_failed,
)
from shared.answering.turn_question import (
    TurnQuestion,
    answer_result,
    awaiting_consent,
    collected_once,
    held_call,
    with_one_held,
)
from shared.answering.unwritten_answer import answer_without_model, nothing_found
from shared.answering.web_consent import consent_result, uses_web
from shared.conversations.window import conversation_element
from shared.documents.figures import seen_pictures
from shared.evidence.citations import CitationBook
from shared.evidence.figures import FigurePlacer
from shared.evidence.reader_text import readable
from shared.platform.errors import BudgetExceededError, CallTimeoutError, GroundworkError, ModelFixableError
from shared.platform.language_models.models import CallLimits, ChatModel, Message, ModelTurn, Picture
from shared.platform.telemetry import get_logger
from shared.retrieval.models import Hit
from shared.runs.event_log import EventLog
from shared.runs.events import (
    RunEvent,
    ThoughtEvent,
    warning_events,
)
from shared.runs.evidence import Evidence
from shared.runs.models import RunAnswer, WritingFacts
from shared.runs.step_time import StepTime
from shared.tools.ask_user import AskUserParameters
from shared.tools.outside import WEB_TOOLS, Outside, outside_of
from shared.tools.registry import OUTSIDE_TOOLS, tool_definition
from shared.tools.semantic_search import SemanticSearch
from shared.tools.tool_calls import PlannedCall, signature
from shared.tools.workspace_tools import reads_files

_MAX_THOUGHT_CHARS = 500
_SHARED_NAMES_S = 1.0  # one search by names, for documents missing from the first search: 10 ms


class AnswerTurn:
    """A single attempt of the main agent at one turn; implements the callbacks of `take_turn`."""

    def __init__(
        self,
        context: StepContext,
        action: TakeTurn,
        question: TurnQuestion,
        time: StepTime,
        *,
        first: Sequence[RunEvent] = (),
        advice: str = "",
    ) -> None:
        """Prepare the turn.

        Args:
            first: events that precede the turn's events.
            advice: advice of the delegation policy before the first turn.
        """
        self._context = context
        self._services = context.services
        self._action = action
        self._question = question
        self._time = time
        self._before = question.before
        self._first = first
        turns = question.before.turns
        self._advice = turns[0].advice if turns else advice
        self._may_call = action.may_call and bool(question.tools) and not time.left.is_short
        self._may_look = action.may_look and self._may_call and SemanticSearch.name in question.tools
        self._text, self._is_read = "", True

    @property
    def chat_model(self) -> ChatModel:
        """The chat model, whose usage is charged to the run's budget."""
        return self._services.chat_model

    async def begin(self) -> None:
        """Execute the last turn's tool calls and prepare the answer."""
        opening: list[RunEvent] = [*self._first]
        if not self._before.turns:
            opening += warning_events(self._question.collected.warnings)
            if SemanticSearch.name in self._question.tools:
                opening.append(_thought(self._question.collected.evidence))
        event_log = await self._context.open(*opening)
        await self._look_up(event_log)
        self._writer = self._new_writer(event_log, await self._shared_names())

    async def stored(self, turn: Turn) -> Turn:
        """Store the turn and return it.

        The end of the text and the turn are appended with the step's completion. A turn with a call that the
        script performs is stored immediately, so that the call is performed only once.
        """
        event_log, turns = await self._context.opened(), self._before.turns
        turn = turn.model_copy(update={"advice": self._advice})
        sent_warnings = {*self._question.warnings, *(turns[-1].answer.warnings if turns else ())}
        event_log.stage(
            *warning_events(warning for warning in turn.answer.warnings if warning not in sent_warnings)
        )
        await self._context.show(turn.answer)
        await self._context.keep(turn, "turn")
        await self._keep_facts(event_log)
        if turn.asks_consent or held_call(turn) is not None:
            await event_log.write()
        return turn

    async def _look_up(self, event_log: EventLog) -> None:
        """Execute the tool calls of the last turn, unless an earlier attempt has stored their results."""
        before = self._before
        waiting = list(zip(self._action.earlier, before.turns, strict=True))[len(before.results) :]
        for step, turn in waiting:
            found = await look_up(
                turn,
                self._question,
                self._services,
                outside=self._outside(),
                time=self._time,
                event_log=event_log,
                held=await self._held_results(step, turn, event_log),
            )
            before.results.append(await self._context.keep(found, "results", of=step))

    def _outside(self) -> Outside:
        """Return restrictions on web calls that prevent text read by the model from being sent to other
        sites.
        """
        question, before = self._question, self._before
        request, evidence = question.request, question.shown
        calls = [item for turn in before.turns for item in turn.calls]
        of_web = {item.call.call_id for item in calls if item.call.name in OUTSIDE_TOOLS}
        results = [message for found in before.results for message in found.messages]
        shown = [
            conversation_element(request.conversation),
            documents_xml(question.collected.evidence),
            question.collected.findings,
            *(message.text for message in results if message.call_id not in of_web),
        ]
        records = {record.doc_id: record for record in evidence.records}
        queried = (doc_id for found in before.results for doc_id in found.table_doc_ids)
        # Workspace files may contain text that earlier runs read from unknown documents.
        files = [item.call.name for item in calls if reads_files(item)]
        read = [*(hit.doc_id for hit in evidence.blocks), *queried, *records, *files]
        return outside_of(
            self._services.settings,
            own_words=[
                *(turn.question for turn in request.conversation.turns),
                request.question,
                before.choice.said,
            ],
            document_texts=shown,
            search_results=[url for found in before.results for url in found.found_urls],
            documents={doc_id: records.get(doc_id) for doc_id in read},
        )

    async def _held_results(self, step: int, turn: Turn, event_log: EventLog) -> dict[str, HeldResult]:
        """Return the results of the turn's calls that the run loop executes, by call id."""
        if turn.asks_consent:
            return self._results_of_consent(turn)
        if (held := held_call(turn)) is None:
            return {}
        call_id, said = held[0].call.call_id, held[1]
        if isinstance(said, AskUserParameters):
            return {call_id: answer_result(said, self._before.choice)}
        refused = await self._context.journal.find(step, HeldResult, "refused")
        if refused is not None:
            return {call_id: refused}
        shown = self._question.shown
        collected = await collected_once(self._context, step, shown)
        documents = await self._context.searches.readable(collected.doc_ids, self._question.request)
        collected = collected.only_readable(documents)
        self._question.join(collected)
        if collected.warnings:
            await event_log.write(*warning_events(collected.warnings))
        block_ids = {hit.block_id for hit in shown.blocks}
        result = HeldResult(
            text=call_result(collected, block_ids),
            hits=tuple(hit for hit in collected.evidence.hits if hit.block_id not in block_ids),
            records=collected.evidence.records,
        )
        return {call_id: result}

    def _results_of_consent(self, turn: Turn) -> dict[str, HeldResult]:
        """Return results for web calls that must not run now; for all of them if consent was denied."""
        granted = bool(self._before.web_allowed)
        held = held_call(turn)
        waiting = [held[0]] if granted and held else [] if granted else filter(uses_web, turn.calls)
        text = json.dumps(consent_result(granted=granted))
        return {call.call.call_id: HeldResult(text=text) for call in waiting}

    async def _shared_names(self) -> Collection[str]:
        """Return the file names in the evidence that several documents share, or all file names if the lookup
        fails.
        """
        names = {hit.filename for hit in (*self._question.shown.blocks, *self._question.collected.proofs)}
        names -= set(self._question.collected.evidence.unique_names)
        documents = self._context.searches.documents(self._question.request)
        try:
            async with asyncio.timeout(_SHARED_NAMES_S):
                return await documents.shared_names(names)
        except (TimeoutError, GroundworkError) as failed:
            get_logger().warning("documents.read_failed", error_type=type(failed).__name__)
            return names

    def _new_writer(self, event_log: EventLog, shared_names: Collection[str]) -> AnswerWriter:
        question, results = self._question, self._before.results
        evidence = question.shown
        book = CitationBook(
            hits=(*evidence.blocks, *question.collected.proofs),
            records={record.doc_id: record for record in evidence.records},
            pages=tuple(page for found in results for page in found.pages),
            source_urls={
                record.doc_id: record.source_url for record in evidence.records if record.source_url
            },
            run_id=self._context.run_id,
            shared_names=shared_names,
        )
        writer = AnswerWriter(
            stream=AnswerStream(event_log, self._context.shown.record, Draft(FigurePlacer(book.hits))),
            book=book,
            repairer=QuoteRepairer(self._services.chat_model, self._repair_limits, question.text),
            words=question.words,
            needs_proof=not question.request.proof_is_optional
            and question.stored.plan.query_type not in DOCUMENT_QUESTIONS,
            numbers=self._number_check(),
        )
        if self._before.turns:
            writer.go_on(self._before.turns[-1].answer)
        return writer

    def _number_check(self) -> NumberCheck:
        question = self._question
        return NumberCheck(
            results=[result for found in self._before.results for result in found.tables],
            is_computed=lambda result: recomputed(result, question.request, self._services, self._time),
            others=(
                f"{question.text}\n{question.request.question}",
                *(hit.content for hit in question.shown.blocks if hit.content),
            ),
            language=question.stored.plan.language,
            today=question.request.today,
        )

    async def model_call(self) -> ModelCall | None:
        """Return the input of the model call, or None if there is no evidence to answer from.

        Raises:
            ModelFailedError: too little time is left.
        """
        turns, results, writer = self._before.turns, self._before.results, self._writer
        # A failed search proves nothing, so the model must describe that gap again.
        nothing_new = bool(turns) and not (turns[-1].calls or results[-1].hits or results[-1].not_searched)
        # An agent's instructions and tools, or the web, may help without documents.
        may_help = self._question.request.agent or set(WEB_TOOLS) & set(self._question.tools)
        if nothing_new:
            await writer.write(from_first_gap(turns[-1].said), at_end=True)
            return None
        if self._question.is_empty and not turns and not may_help:
            words = self._question.words
            gap = nothing_found(words, self._question.collected.evidence)
            writer.show_gap(gap, words.abstention(gap.missing, gap.next_step))
            return None
        if not self._time.left.may_write:
            raise ModelFailedError(CallTimeoutError("The time limit of this question was reached."))
        settings, own = self._services.settings.answering, self._services.own_tools
        messages = await self._messages()
        limits = CallLimits(
            timeout_s=self._time.seconds("write", settings.answer_timeout_s),
            max_output_tokens=settings.max_answer_tokens,
        )
        tools = [
            own[name].definition if name in own else tool_definition(name) for name in self._question.tools
        ]
        self._is_read = False
        return ModelCall(messages, tools, limits, self._may_call)

    async def hear(self, text: str) -> None:
        """Add streamed model text to the answer."""
        self._text += text
        if self._writer.stream.is_due:
            _, answer = split_turn(self._text, is_answer=not self._may_call)
            await self._writer.write(answer or "", to_gap=self._may_look)

    async def go_on(self, turn: ModelTurn) -> Turn | None:
        """Return the turn if more work follows: tool calls to execute, or a search for what the answer says
        is missing. Return None if the answer is final.
        """
        self._is_read = True
        writer, text = self._writer, self._text
        thought, answer = split_turn(text, is_answer=not self._may_call, at_end=True)
        planned = self._calls(turn) if answer is None else ()
        calls, asks_consent = awaiting_consent(planned, self._question.web_consent)
        if answer is None and not calls:
            thought, answer = split_turn(text, is_answer=True, at_end=True)
        await writer.write(answer or "", at_end=True, to_gap=self._may_look)
        gaps = read_gaps(answer or "") if self._may_look else ()
        if thought := readable(thought.strip()[:_MAX_THOUGHT_CHARS]):
            await writer.stream.event_log.write(ThoughtEvent(text=thought))
        if not calls and not gaps:
            return None
        await writer.finish(goes_on=True)
        return Turn(
            said=text,
            calls=calls,
            gaps=gaps,
            answer=self._answer(writer),
            asks_consent=asks_consent,
        )

    async def finish(self, turn: ModelTurn | None) -> Turn:
        """Complete the answer and return the turn.

        Raises:
            ModelFailedError: the model wrote nothing.
        """
        words, writer, is_cut = self._question.words, self._writer, turn is not None and turn.cut
        cut = words.note.format(words.cut) if is_cut else ""
        await writer.finish(cut, self._question.collected.web)
        if not writer.draft.text.strip():
            raise ModelFailedError(ModelFixableError("The model wrote no answer.", "Ask again."))
        answer = self._answer(writer, truncated=is_cut, warnings=(words.cut,) if is_cut else ())
        if writer.is_answer and not is_cut:
            answer = answer.model_copy(update={"next_questions": self._next_questions(writer)})
        return Turn(said=self._text, answer=answer, is_last=True)

    async def recover(self, failed: GroundworkError) -> Turn:
        """Return an answer despite a model failure: the proved sentences written so far, or quotations from
        the evidence.

        Raises:
            GroundworkError: the step should be retried instead.
        """
        if not self._is_read:  # show the complete sentences that came before the failure
            _, answer = split_turn(self._text, is_answer=not self._may_call, at_end=True)
            text = answer if answer is not None else split_turn(self._text, is_answer=True, at_end=True)[1]
            await self._writer.write(text or "", to_gap=self._may_look)
        return self._without_model(self._writer, failed)

    def _next_questions(self, writer: AnswerWriter) -> tuple[str, ...]:
        request = self._question.request
        earlier = (request.question, *(turn.question for turn in request.conversation.turns))
        return worth_asking(writer.next_questions, self._question.text, writer.draft.text, earlier)

    async def _messages(self) -> list[Message]:
        """Return the messages of the prompt: the question with its evidence, then each earlier turn with its
        results.
        """
        question, settings = self._question, self._services.settings.answering
        evidence = question.collected.evidence
        rules, asked = first_messages(
            question.request,
            question.stored.plan,
            evidence,
            settings.organisation,
            question.collected.findings,
            advice=self._advice,
            files=[file.filename for file in question.stored.files],
        )
        seen = await self._pictures(evidence.best_figures(settings.prompt_figures))
        messages: list[Message] = [rules, asked.model_copy(update={"pictures": seen})]
        for turn, found in zip(self._before.turns, self._before.results, strict=True):
            calls = tuple(item.call for item in turn.calls)
            messages += [Message(role="assistant", text=turn.said, tool_calls=calls), *found.messages]
            if viewed := await self._pictures(found.figures):
                # The protocol allows no pictures in tool results, so they follow in a user message.
                messages.append(Message(role="user", text="The pictures asked for:", pictures=viewed))
        return messages

    async def _pictures(self, figures: Sequence[Hit]) -> tuple[Picture, ...]:
        if not self._services.settings.answering.prompt_figures:
            return ()
        return await seen_pictures(figures, self._services)

    def _calls(self, turn: ModelTurn) -> tuple[PlannedCall, ...]:
        made = [
            signature(item.call.name, item.arguments)
            for earlier in self._before.turns
            for item in earlier.calls
            if item.arguments is not None
        ]
        rules = main_profile(self._question.request.agent).calls
        planned = planned_calls(rules, turn.tool_calls, self._question.tools, made)
        return with_one_held(planned, may_ask=not self._before.asking_step)

    def _repair_limits(self) -> CallLimits | None:
        if not self._time.left.may_write:
            return None
        timeout_s = self._time.seconds("repair", self._services.settings.answering.repair_timeout_s)
        return CallLimits(timeout_s=timeout_s, max_retries=0)

    def _answer(
        self, writer: AnswerWriter, *, truncated: bool = False, warnings: tuple[str, ...] = ()
    ) -> RunAnswer:
        gap = writer.gaps[0] if writer.gaps else None
        return RunAnswer(
            run_id=self._context.run_id,
            text=writer.draft.text,
            language=self._question.stored.plan.language,
            citations=tuple(writer.book.citations),
            abstained=not writer.is_answer,
            missing=" ".join(gap.missing for gap in writer.gaps),
            next_step=gap.next_step if gap else "",
            unsupported_claims=writer.unsupported_claims,
            truncated=truncated,
            figures=tuple(writer.draft.figures.placed),
            sub_agents=self._question.collected.views,
            warnings=tuple(dict.fromkeys((*self._question.warnings, *self._not_searched(writer), *warnings))),
        )

    def _not_searched(self, writer: AnswerWriter) -> tuple[str, ...]:
        has_failed = bool(writer.gaps) and any(found.not_searched for found in self._before.results)
        return (self._question.words.gap_not_searched,) if has_failed else ()

    def _without_model(self, writer: AnswerWriter, failed: GroundworkError) -> Turn:
        observed = step_failed(failed, self._time.left.remaining_s)
        if retry_delay_s("turn", self._action.tries, observed) is not None:
            raise failed
        get_logger().warning("answer.degraded", run_id=self._context.run_id, error_type=failed.code)
        question, words, evidence = self._question, self._question.words, self._question.shown
        before = self._before.turns[-1] if self._before.turns else None
        if question.request.agent and not (evidence.blocks or evidence.records or writer.draft.text):
            raise failed  # no evidence to quote; custom agents may not use documents at all
        if before and before.gaps and writer.draft.text == before.answer.text:
            for gap in before.gaps:  # the model has not read the evidence found for them
                writer.show_gap(gap)
            return Turn(said="", answer=self._answer(writer), is_last=True)
        is_late = isinstance(failed, CallTimeoutError | BudgetExceededError)
        warning = words.late if isinstance(failed, CallTimeoutError) else words.broken
        writer.break_off(words.note.format(warning), question.collected.web)
        if writer.draft.text and (writer.has_citations or not writer.book.hits or writer.gaps):
            return Turn(
                said="",
                answer=self._answer(writer, truncated=True, warnings=(warning,)),
                is_last=True,
            )
        warning = words.not_written_in_time if is_late else words.not_written
        book = CitationBook(
            writer.book.hits,
            writer.book.source_urls,
            self._context.run_id,
            writer.book.records,
            shared_names=writer.book.shared_names,
        )
        answer = answer_without_model(question.text, evidence, book, words, warning)
        update = {
            "text": "\n\n".join(filter(None, (answer.text, question.collected.web))),
            "language": question.stored.plan.language,
            "sub_agents": question.collected.views,
            "warnings": tuple(dict.fromkeys((*question.warnings, warning))),
        }
        return Turn(said="", answer=answer.model_copy(update=update), is_last=True)

    async def _keep_facts(self, event_log: EventLog) -> None:
        """Store metrics about the answer.

        The time of the first token comes from the first turn that wrote text.
        """
        for step in self._action.earlier:
            facts = await self._context.journal.find(step, WritingFacts, "facts")
            if facts is not None and facts.first_token_ms is not None:
                break
        else:
            since = self._question.stored.resumed_at or self._question.request.created_at
            facts = writing_facts(event_log, since, 0)
        pictures = sum(hit.block_type == "image" for hit in self._question.shown.blocks)
        facts = WritingFacts(first_token_ms=facts.first_token_ms, figures_available=pictures)
        await self._context.keep(facts, "facts")


def _thought(evidence: Evidence) -> ThoughtEvent:
    """Return a THOUGHT event that summarises the evidence for the answer."""
    if evidence.hits:
        passages, documents = len(evidence.hits), len({hit.doc_id for hit in evidence.hits})
        return ThoughtEvent(
            text=f"Writing the answer (passages: {passages}, documents: {documents}).",
            code="writing",
            passages=passages,
            documents=documents,
        )
    if evidence.records:
        return ThoughtEvent(
            text=f"Writing the answer from descriptions (documents: {len(evidence.records)}).",
            code="writing_from_descriptions",
            documents=len(evidence.records),
        )
    return ThoughtEvent(text="The first search found nothing.", code="nothing_found")
