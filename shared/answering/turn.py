"""One turn of the model: make the calls of the turn before, let the model speak, prove what it quotes.

The model answers, which is streamed as it is written, or calls tools, or names gaps in what it was shown.
Calls and gaps are looked into by the next turn; the answer continues from where it stopped.

Over 500 lines, so that a turn can be read from its first call to its last quotation in one place.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from shared.answering.answer_writer import (
    AnswerWriter,
    QuoteRepairer,
    answer_without_model,
    nothing_found,
)
from shared.answering.attempt import StepAttempt
from shared.answering.held_calls import (
    answer_result,
    delegation_of,
    held_call,
    question_of,
    with_one_held,
)
from shared.answering.lookups import look_up, recomputed
from shared.answering.loop import retry_delay_s
from shared.answering.metering import ModelFailedError, turn_pieces
from shared.answering.models import HeldResult, Turn, TurnResults
from shared.answering.number_gate import NumberGate
from shared.answering.prompt import DOCUMENT_QUESTIONS, documents_xml, first_messages
from shared.answering.shown_answer import show_stored
from shared.answering.steps import (
    TakeTurn,
    step_failed,
)
from shared.answering.turn_reader import TurnReader
from shared.conversations.window import conversation_element
from shared.documents.figures import readable_documents, seen_pictures
from shared.evidence.citations import CitationBook
from shared.evidence.messages import Messages, messages_in
from shared.platform.concurrency import run_together
from shared.platform.errors import BudgetExceededError, CallTimeoutError, GroundworkError, ModelFixableError
from shared.platform.language_models.models import CallLimits, Message, ModelTurn, Picture, ToolDefinition
from shared.platform.telemetry import get_logger
from shared.quality.run_quality import keep_facts, writing_facts
from shared.retrieval.blocks import BlockLookup
from shared.retrieval.models import Hit
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.event_log import EventLog
from shared.runs.events import (
    RunEvent,
    ThoughtEvent,
    warning_events,
)
from shared.runs.evidence import Evidence, StoredPlan
from shared.runs.models import Choice, RunAnswer, RunRequest, WritingFacts
from shared.runs.step_time import StepTime
from shared.subagents.results import Collected, call_result, collect
from shared.tools.outside import OUTSIDE_TOOLS, WEB_TOOLS, Outside, outside_of
from shared.tools.registry import tool_definition
from shared.tools.semantic_search import SemanticSearch
from shared.tools.tool_calls import PlannedCall, plan_calls, signature
from shared.tools.workspace_tools import reads_files

MAX_CALLS = 6  # of one turn; unmeasured
_MAX_TOOL_CALLS = 16  # of one answer, as of a sub-agent (contracts.md, section 4)
_MAX_THOUGHT_CHARS = 500


async def collected_once(attempt: StepAttempt, step: int, evidence: Evidence) -> Collected:
    """What the sub-agents of a step brought, the same for all turns; asked of them, and counted, once."""
    memory = attempt.memory
    kept = await memory.find(step, Collected, "collected")
    if kept is not None:
        return kept
    return await memory.put(step, await collect(memory, step, evidence, attempt.services), "collected")


@dataclass
class TurnQuestion:
    """What is answered, and from what.

    Attributes:
        tools: names of those that the model may call.
    """

    request: RunRequest
    stored: StoredPlan
    collected: Collected
    tools: tuple[str, ...]

    def join(self, more: Collected) -> None:
        """Sub-agents that a turn set to work count with those before the first; the first prompt stays."""
        own = self.collected
        joined = {
            "proofs": (*own.proofs, *more.proofs),
            "views": (*own.views, *more.views),
            "warnings": (*own.warnings, *more.warnings),
            "web": "\n\n".join(filter(None, (own.web, more.web))),
        }
        self.collected = own.model_copy(update=joined)

    @property
    def text(self) -> str:
        """In words that stand alone."""
        return self.stored.plan.standalone_question or self.request.question

    @property
    def words(self) -> Messages:
        """Our own, in the answer's language."""
        words = messages_in(self.stored.plan.language)
        return words.without_search if self.collected.evidence.unfinished and self.is_empty else words

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found."""
        evidence = self.collected.evidence
        return not (evidence.blocks or evidence.records or evidence.tables or self.collected.findings)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What did not go as it should, in words, each once."""
        told = (*self.stored.warnings, *self.collected.evidence.warnings, *self.collected.warnings)
        return tuple(dict.fromkeys(told))


@dataclass
class Before:
    """The turns before this one.

    Attributes:
        results: what their calls brought; of the last one maybe nothing yet.
        asking_step: of the turn that asked the person; 0 = none did.
        choice: what they answered.
        collected: what the sub-agents of a turn brought.
    """

    turns: list[Turn]
    results: list[TurnResults]
    asking_step: int = 0
    choice: Choice = field(default_factory=Choice)
    collected: list[Collected] = field(default_factory=list)

    @classmethod
    async def read(cls, attempt: StepAttempt, action: TakeTurn) -> "Before":
        """From working memory."""
        memory = attempt.memory
        turns = [await memory.get(step, Turn, "turn") for step in action.earlier]
        results = [await memory.find(step, TurnResults, "results") for step in action.earlier]
        delegating = [step for step, turn in zip(action.earlier, turns, strict=True) if delegation_of(turn)]
        brought = [await memory.find(step, Collected, "collected") for step in delegating]
        asking = (step for step, turn in zip(action.earlier, turns, strict=True) if question_of(turn))
        return cls(
            turns,
            [found for found in results if found is not None],
            next(asking, 0),
            collected=[one for one in brought if one is not None],
        )

    async def add_to(self, question: TurnQuestion, attempt: StepAttempt) -> None:
        """Add what sub-agents of earlier turns brought; leave out what may not be read any more."""
        for more in self.collected:
            question.join(more)
        if self.asking_step:
            question.collected = await self._withdraw(attempt, question.request, question.collected)

    async def _withdraw(self, attempt: StepAttempt, request: RunRequest, collected: Collected) -> Collected:
        """Leave out what may not be read any more: while the person was asked, rights may have changed."""
        own = collected.evidence
        of_first = (*own.blocks, *collected.proofs)
        ids = [hit.block_id for hit in of_first]
        ids += [hit.block_id for found in self.results for hit in (*found.hits, *found.figures)]
        index = SecuredIndex(attempt.services.content_index, request.user)
        allowed = {hit.block_id for hit in await BlockLookup(index).get_many(ids)}
        of_tables = {table.doc_id for table in own.tables}.union(*(one.table_doc_ids for one in self.results))
        readable = await readable_documents(of_tables, request.user, attempt.services) if of_tables else ()
        self.results = [
            found
            if all(hit.block_id in allowed for hit in (*found.hits, *found.figures))
            and found.table_doc_ids.issubset(readable)
            else found.withdrawn
            for found in self.results
        ]
        own = own.model_copy(update={"tables": tuple(one for one in own.tables if one.doc_id in readable)})
        collected = collected.model_copy(update={"evidence": own})
        if all(hit.block_id in allowed for hit in of_first):
            return collected
        kept = {
            name: tuple(hit for hit in getattr(own, name) if hit.block_id in allowed)
            for name in ("hits", "cited_before", "figures")
        }
        evidence = own.model_copy(update={**kept, "whole": ()})
        return Collected(evidence=evidence, views=collected.views, warnings=collected.warnings)


class TurnAttempt:
    """One attempt at one turn."""

    def __init__(
        self, attempt: StepAttempt, action: TakeTurn, question: TurnQuestion, time: StepTime, before: Before
    ) -> None:
        self._attempt = attempt
        self._services = attempt.services
        self._memory = attempt.memory
        self._action = action
        self._question = question
        self._time = time
        self._before = before
        self._advice = ""
        self._may_call = action.may_call and bool(question.tools) and not time.left.is_short
        self._may_look = action.may_look and self._may_call and SemanticSearch.name in question.tools

    async def take(self, first: Sequence[RunEvent], advice: str) -> tuple[Turn, EventLog]:
        """Make the earlier calls, let the model speak, store its turn.

        Args:
            advice: of the delegation policy before the first turn.
        """
        turns = self._before.turns
        self._advice = turns[0].advice if turns else advice
        opening: list[RunEvent] = [*first]
        if not turns:
            opening += warning_events(self._question.collected.warnings)
            if SemanticSearch.name in self._question.tools:
                opening.append(_thought(self._question.collected.evidence))
        event_log = await self._attempt.open(*opening)
        await self._look_up(event_log)
        results, evidence = self._before.results, self.shown
        writer = self._writer(event_log, evidence, turns, results)
        try:
            turn = await self._speak(writer, turns, results)
            is_shown = True
        except ModelFailedError as broken:
            last = turns[-1] if turns else None
            turn, is_shown = await self._without_model(writer, evidence, broken.failed, last), False
        turn = turn.model_copy(update={"advice": self._advice})
        if warnings := self._new_warnings(turn, turns):
            await event_log.write(*warning_events(warnings))
        kept, _ = await run_together(
            self._memory.put(self._action.step, turn, "turn"), self._keep_facts(event_log, evidence)
        )
        # The first to be stored is what this attempt has shown; should another show its own, it repairs it.
        if kept is not turn or not is_shown:
            await show_stored(self._services.run_log, kept.answer, self._action.step)
        return kept, event_log

    @property
    def shown(self) -> Evidence:
        """What the model was shown, as far as it was looked up."""
        return _with_results(self._question.collected.evidence, self._before.results)

    async def _look_up(self, event_log: EventLog) -> None:
        """Make the calls of the turns that have no results yet: those of the last one."""
        before = self._before
        waiting = list(zip(self._action.earlier, before.turns, strict=True))[len(before.results) :]
        for step, turn in waiting:
            found = await look_up(
                turn,
                self._question.request,
                self._services,
                shown=self.shown,
                outside=self._outside(),
                time=self._time,
                event_log=event_log,
                held=await self._held_results(step, turn, event_log),
                queried=sum(len(one.tables) for one in before.results),
            )
            before.results.append(await self._memory.put(step, found, "results"))

    def _outside(self) -> Outside:
        """How the calls of this turn may use the web: nothing of what the model has read may get there."""
        question, evidence, before = self._question, self.shown, self._before
        request = question.request
        calls = [item for turn in before.turns for item in turn.calls]
        of_web = {item.call.call_id for item in calls if item.call.name in OUTSIDE_TOOLS}
        results = [message for found in before.results for message in found.messages]
        shown = [
            conversation_element(request.conversation),
            documents_xml(question.collected.evidence),
            question.collected.findings,
            *(message.text for message in results if message.call_id not in of_web),
        ]
        known = {record.doc_id: record for record in evidence.records}
        queried = (doc_id for found in before.results for doc_id in found.table_doc_ids)
        # Files of the workspace hold what earlier runs read, in documents that nobody knows any more.
        files = [item.call.name for item in calls if reads_files(item)]
        read = [*(hit.doc_id for hit in evidence.blocks), *queried, *known, *files]
        return outside_of(
            self._services.settings,
            own_words=[
                *(turn.question for turn in request.conversation.turns),
                request.question,
                before.choice.said,
            ],
            shown=shown,
            found=[url for found in before.results for url in found.found_urls],
            documents={doc_id: known.get(doc_id) for doc_id in read},
        )

    async def _held_results(self, step: int, turn: Turn, event_log: EventLog) -> dict[str, HeldResult]:
        """What became of the call that the loop carried out after a turn."""
        call = held_call(turn)
        if call is None:
            return {}
        if asked := question_of(turn):
            return {call.call.call_id: answer_result(asked, self._before.choice)}
        refused = await self._memory.find(step, HeldResult, "refused")
        if refused is not None:
            return {call.call.call_id: refused}
        shown = self.shown
        collected = await collected_once(self._attempt, step, shown)
        self._question.join(collected)
        if collected.warnings:
            await event_log.write(*warning_events(collected.warnings))
        known = {hit.block_id for hit in shown.blocks}
        result = HeldResult(
            text=call_result(collected, known),
            hits=tuple(hit for hit in collected.evidence.hits if hit.block_id not in known),
            records=collected.evidence.records,
        )
        return {call.call.call_id: result}

    def _new_warnings(self, turn: Turn, turns: Sequence[Turn]) -> Sequence[str]:
        """Those that no earlier step has sent."""
        sent = {*self._question.warnings, *(turns[-1].answer.warnings if turns else ())}
        return [warning for warning in turn.answer.warnings if warning not in sent]

    def _writer(
        self,
        event_log: EventLog,
        evidence: Evidence,
        turns: Sequence[Turn],
        results: Sequence[TurnResults],
    ) -> AnswerWriter:
        question = self._question
        writer = AnswerWriter(
            event_log=event_log,
            book=CitationBook(
                hits=(*evidence.blocks, *question.collected.proofs),
                records={record.doc_id: record for record in evidence.records},
                pages=tuple(page for found in results for page in found.pages),
                source_urls={
                    record.doc_id: record.source_url for record in evidence.records if record.source_url
                },
                run_id=self._attempt.run_id,
            ),
            repairer=QuoteRepairer(self._services.chat_model, self._repair_limits, question.text),
            words=question.words,
            needs_proof=not question.request.proof_is_optional
            and question.stored.plan.query_type not in DOCUMENT_QUESTIONS,
            may_look=self._may_look,
            not_searched=frozenset(missing for found in results for missing in found.not_searched),
            gate=NumberGate(
                results=[result for found in results for result in found.tables],
                is_computed=lambda result: recomputed(result, question.request, self._services, self._time),
                others=(
                    f"{question.text}\n{question.request.question}",
                    *(hit.content for hit in evidence.blocks if hit.content),
                ),
                language=question.stored.plan.language,
            ),
        )
        if turns:
            writer.go_on(turns[-1].answer)
        return writer

    async def _speak(
        self,
        writer: AnswerWriter,
        turns: Sequence[Turn],
        results: Sequence[TurnResults],
    ) -> Turn:
        """The model's turn. Without anything to write from no model is asked: it could say nothing.

        Raises:
            ModelFailedError: the model failed, was late, or said nothing.
        """
        gaps = turns[-1].gaps if turns else ()
        nothing_new = bool(turns) and not turns[-1].calls and not results[-1].hits
        # An agent may have other tools than documents, and instructions for that case; so may the web help.
        may_help = self._question.request.agent or set(WEB_TOOLS) & set(self._question.tools)
        if nothing_new or (self._question.is_empty and not turns and not may_help):
            for gap in gaps or (nothing_found(self._question.words, self._question.collected.evidence),):
                writer.show_gap(gap)
            return await self._finished(writer, ModelTurn())
        if not self._time.left.may_write:
            raise ModelFailedError(CallTimeoutError("The time for this question is up."))
        reader = TurnReader(must_answer=not self._may_call)
        turn, said = await self._read(writer, reader, self._pieces(turns, results))
        calls = self._calls(turn, turns) if self._may_call and not reader.has_answer else ()
        await writer.feed(reader.finish(is_answer=not calls))
        if reader.thought.strip():
            await writer.event_log.write(ThoughtEvent(text=reader.thought.strip()[:_MAX_THOUGHT_CHARS]))
        if calls or (writer.gaps and self._may_look):
            await writer.finish(goes_on=True)
            return Turn(said=said, calls=calls, gaps=tuple(writer.gaps), answer=self._answer(writer))
        return await self._finished(writer, turn, said)

    async def _read(
        self, writer: AnswerWriter, reader: TurnReader, pieces: AsyncGenerator[str | ModelTurn]
    ) -> tuple[ModelTurn, str]:
        """The turn, and its text, which is fed to the writer as far as it belongs to the answer."""
        said: list[str] = []
        turn = ModelTurn()
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    if isinstance(piece, ModelTurn):
                        turn = piece
                    else:
                        said.append(piece)
                        await writer.feed(reader.feed(piece))
        except ModelFailedError:
            await writer.feed(reader.finish(is_answer=True))  # what was written may stand
            raise
        return turn, "".join(said)

    async def _finished(self, writer: AnswerWriter, turn: ModelTurn, said: str = "") -> Turn:
        words = self._question.words
        cut = words.note.format(words.cut) if turn.cut else ""
        await writer.finish(cut, self._question.collected.web)
        if not writer.text.strip():
            raise ModelFailedError(ModelFixableError("The model wrote no answer.", "Ask again."))
        answer = self._answer(writer, truncated=turn.cut, warnings=(words.cut,) if turn.cut else ())
        return Turn(said=said, answer=answer, is_last=True)

    async def _pieces(
        self, turns: Sequence[Turn], results: Sequence[TurnResults]
    ) -> AsyncGenerator[str | ModelTurn]:
        question, settings = self._question, self._services.settings.answering
        evidence = question.collected.evidence
        rules, asked = first_messages(
            question.request,
            question.stored.plan,
            evidence,
            settings.organisation,
            question.collected.findings,
            advice=self._advice,
        )
        seen = await self._pictures(evidence.best_figures(settings.prompt_figures))
        messages: list[Message] = [rules, asked.model_copy(update={"pictures": seen})]
        for turn, found in zip(turns, results, strict=True):
            calls = tuple(item.call for item in turn.calls)
            messages += [Message(role="assistant", text=turn.said, tool_calls=calls), *found.messages]
            if viewed := await self._pictures(found.figures):
                # Results of tools hold no pictures in the protocol: they follow as a message of the user.
                messages.append(Message(role="user", text="The pictures asked for:", pictures=viewed))
        limits = CallLimits(
            timeout_s=self._time.seconds("write", settings.answer_timeout_s),
            max_output_tokens=settings.max_answer_tokens,
        )
        pieces = turn_pieces(
            self._services.chat_model,
            messages,
            self._definitions(),
            limits,
            may_call=self._may_call,
        )
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece

    def _definitions(self) -> list[ToolDefinition]:
        own = self._services.own_tools
        return [
            own[name].definition if name in own else tool_definition(name) for name in self._question.tools
        ]

    async def _pictures(self, figures: Sequence[Hit]) -> tuple[Picture, ...]:
        if not self._services.settings.answering.prompt_figures:
            return ()
        return await seen_pictures(figures, self._services.blobs)

    def _calls(self, turn: ModelTurn, turns: Sequence[Turn]) -> tuple[PlannedCall, ...]:
        made = [
            signature(item.call.name, item.arguments)
            for earlier in turns
            for item in earlier.calls
            if item.arguments is not None
        ]
        agent = self._question.request.agent
        limit = agent.limits.calls if agent else None
        left = min(MAX_CALLS, (_MAX_TOOL_CALLS if limit is None else limit) - len(made))
        planned = plan_calls(turn.tool_calls, self._question.tools, made, left)
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
            run_id=self._attempt.run_id,
            text=writer.text,
            citations=tuple(writer.book.citations),
            abstained=not writer.is_answer,
            missing="; ".join(gap.missing for gap in writer.gaps),
            next_step=gap.next_step if gap else "",
            unsupported_claims=writer.unsupported_claims,
            truncated=truncated,
            figures=tuple(writer.figures.placed),
            sub_agents=self._question.collected.views,
            warnings=tuple(dict.fromkeys((*self._question.warnings, *writer.warnings, *warnings))),
        )

    async def _without_model(
        self, writer: AnswerWriter, evidence: Evidence, failed: GroundworkError, before: Turn | None
    ) -> Turn:
        """What stands when the model failed: its whole sentences if they prove something, else quotations.

        Raises:
            GroundworkError: it may do better when it is asked again.
        """
        observed = step_failed(failed, self._time.left.remaining_s)
        if retry_delay_s("turn", self._action.tries, observed) is not None:
            raise failed
        get_logger().warning("answer.degraded", run_id=self._attempt.run_id, error_type=failed.code)
        question, words = self._question, self._question.words
        if question.request.agent and not (evidence.blocks or evidence.records or writer.text):
            raise failed  # there is nothing to quote, and documents may have nothing to do with it
        if before and before.gaps and writer.text == before.answer.text:
            for gap in before.gaps:  # what was found for them was not read
                writer.show_gap(gap)
            return Turn(said="", answer=self._answer(writer), is_last=True)
        is_late = isinstance(failed, CallTimeoutError | BudgetExceededError)
        warning = words.late if isinstance(failed, CallTimeoutError) else words.broken
        writer.break_off(words.note.format(warning), question.collected.web)
        if writer.text and (writer.has_citations or not writer.book.hits or writer.gaps):
            return Turn(
                said="",
                answer=self._answer(writer, truncated=True, warnings=(warning,)),
                is_last=True,
            )
        warning = words.not_written_in_time if is_late else words.not_written
        book = CitationBook(writer.book.hits, writer.book.source_urls, self._attempt.run_id)
        answer = answer_without_model(question.text, evidence, book, words, warning)
        told = {
            "text": "\n\n".join(filter(None, (answer.text, question.collected.web))),
            "sub_agents": question.collected.views,
            "warnings": tuple(dict.fromkeys((*question.warnings, warning))),
        }
        return Turn(said="", answer=answer.model_copy(update=told), is_last=True)

    async def _keep_facts(self, event_log: EventLog, evidence: Evidence) -> None:
        """Those of the first turn that wrote something hold for the answer."""
        for step in self._action.earlier:
            facts = await self._memory.find(step, WritingFacts, "facts")
            if facts is not None and facts.first_token_ms is not None:
                break
        else:
            since = self._question.stored.resumed_at or self._question.request.created_at
            facts = writing_facts(event_log, since, 0)
        pictures = sum(hit.block_type == "image" for hit in evidence.blocks)
        facts = WritingFacts(first_token_ms=facts.first_token_ms, figures_available=pictures)
        await keep_facts(self._memory, self._action.step, facts)


def _with_results(evidence: Evidence, results: Sequence[TurnResults]) -> Evidence:
    """The evidence with what was found since, each block once."""
    hits = {hit.block_id: hit for found in results for hit in found.hits}
    hits = {hit.block_id: hit for hit in evidence.hits} | hits
    records = {record.doc_id: record for found in results for record in found.records}
    records = {record.doc_id: record for record in evidence.records} | records
    return evidence.model_copy(update={"hits": tuple(hits.values()), "records": tuple(records.values())})


def _thought(evidence: Evidence) -> ThoughtEvent:
    """What the answer is about to be written from."""
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
