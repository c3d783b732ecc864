"""The answer of one turn of the main agent, which is streamed and proved while the model writes, and which
survives a failure of the model.
"""

import asyncio
from collections.abc import Collection

from shared.answering.answer_stream import AnswerStream
from shared.answering.answer_writer import AnswerWriter
from shared.answering.draft import Draft
from shared.answering.lookups import recomputed
from shared.answering.models import Turn
from shared.answering.next_questions import worth_asking
from shared.answering.number_check import NumberCheck
from shared.answering.prompt import DOCUMENT_QUESTIONS
from shared.answering.quote_repair import QuoteRepairer
from shared.answering.script import retry_delay_s
from shared.answering.step_context import StepContext
from shared.answering.steps import step_failed
from shared.answering.turn_question import TurnQuestion
from shared.answering.unwritten_answer import answer_without_model
from shared.evidence.citations import CitationBook
from shared.evidence.figures import FigurePlacer
from shared.platform.errors import BudgetExceededError, CallTimeoutError, GroundworkError
from shared.platform.language_models.models import CallLimits
from shared.platform.telemetry import get_logger
from shared.runs.event_log import EventLog
from shared.runs.models import RunAnswer
from shared.runs.step_time import StepTime

# Time limit of one search for documents with the same file names, which takes 10 ms.
_SHARED_NAMES_S = 1.0


class TurnAnswer:
    """The answer of one turn. `open` creates its writer, which continues the answer of the earlier turns."""

    def __init__(self, context: StepContext, question: TurnQuestion, time: StepTime) -> None:
        self._context = context
        self._question = question
        self._time = time

    async def open(self, event_log: EventLog) -> AnswerWriter:
        """Create the writer of the answer, which checks it against the evidence known now, and return the
        writer.
        """
        context, question, results = self._context, self._question, self._question.before.results
        evidence = question.shown
        book = CitationBook(
            hits=(*evidence.blocks, *question.collected.proofs),
            records={record.doc_id: record for record in evidence.records},
            pages=tuple(page for turn_results in results for page in turn_results.pages),
            source_urls={
                record.doc_id: record.source_url for record in evidence.records if record.source_url
            },
            run_id=context.run_id,
            shared_names=await self._shared_names(),
        )
        self.writer = AnswerWriter(
            stream=AnswerStream(event_log, context.shown.record, Draft(FigurePlacer(book.hits))),
            book=book,
            repairer=QuoteRepairer(context.services.chat_model, self._repair_limits, question.text),
            words=question.words,
            needs_proof=not question.request.proof_is_optional
            and question.stored.plan.query_type not in DOCUMENT_QUESTIONS,
            numbers=self._number_check(),
        )
        if question.before.turns:
            self.writer.continue_answer(question.before.turns[-1].answer)
        return self.writer

    def current(self, *, truncated: bool = False, warnings: tuple[str, ...] = ()) -> RunAnswer:
        """Return the answer as far as it is written."""
        writer, question = self.writer, self._question
        gap = writer.gaps[0] if writer.gaps else None
        return RunAnswer(
            run_id=self._context.run_id,
            text=writer.draft.text,
            language=question.stored.plan.language,
            citations=tuple(writer.book.citations),
            abstained=not writer.is_answer,
            missing=" ".join(gap.missing for gap in writer.gaps),
            next_step=gap.next_step if gap else "",
            unsupported_claims=writer.unsupported_claims,
            truncated=truncated,
            figures=tuple(writer.draft.figures.placed),
            sub_agents=question.collected.views,
            warnings=tuple(dict.fromkeys((*question.warnings, *self._search_warnings(), *warnings))),
        )

    def complete(self, *, is_cut: bool) -> RunAnswer:
        """Return the finished answer, with suggested follow-up questions unless it is cut off or abstains.

        Args:
            is_cut: whether the model reached its output limit.
        """
        writer, words = self.writer, self._question.words
        if is_cut:
            return self.current(truncated=True, warnings=(words.cut,))
        answer = self.current()
        if not writer.is_answer:
            return answer
        request = self._question.request
        earlier = (request.question, *(turn.question for turn in request.conversation.turns))
        suggested = worth_asking(writer.next_questions, self._question.text, writer.draft.text, earlier)
        return answer.model_copy(update={"next_questions": suggested})

    def after_failure(self, error: GroundworkError, tries: int) -> Turn:
        """Return the last turn after a model failure. Its answer consists of the complete sentences already
        written, or else of quotations from the evidence.

        Args:
            tries: number of earlier failed attempts at the step.

        Raises:
            GroundworkError: `error`, if the step should be retried, or if there is nothing to show.
        """
        writer, question, words = self.writer, self._question, self._question.words
        failure = step_failed(error, self._time.left.remaining_s)
        if retry_delay_s("turn", tries, failure) is not None:
            raise error
        get_logger().warning("answer.degraded", run_id=self._context.run_id, error_type=error.code)
        evidence = question.shown
        if question.request.agent and not (evidence.blocks or evidence.records or writer.draft.text):
            raise error  # there is nothing to quote, and custom agents may not use documents at all
        before = question.before.turns[-1] if question.before.turns else None
        if before and before.gaps and writer.draft.text == before.answer.text:
            for gap in before.gaps:  # the model failed before it could read the evidence found for these gaps
                writer.show_gap(gap)
            return Turn(said="", answer=self.current(), is_last=True)
        warning = words.late if isinstance(error, CallTimeoutError) else words.broken
        writer.break_off(words.note.format(warning), question.collected.web)
        if writer.draft.text and (writer.has_citations or not writer.book.hits or writer.gaps):
            answer = self.current(truncated=True, warnings=(warning,))
        else:
            answer = self._quotations(error)
        return Turn(said="", answer=answer, is_last=True)

    def _quotations(self, error: GroundworkError) -> RunAnswer:
        """Return an answer that consists only of quotations from the evidence."""
        question, words, book = self._question, self._question.words, self.writer.book
        is_late = isinstance(error, CallTimeoutError | BudgetExceededError)
        warning = words.not_written_in_time if is_late else words.not_written
        unused = CitationBook(
            book.hits, book.source_urls, self._context.run_id, book.records, shared_names=book.shared_names
        )
        answer = answer_without_model(question.text, question.shown, unused, words, warning)
        return answer.model_copy(
            update={
                "text": "\n\n".join(filter(None, (answer.text, question.collected.web))),
                "language": question.stored.plan.language,
                "sub_agents": question.collected.views,
                "warnings": tuple(dict.fromkeys((*question.warnings, warning))),
            }
        )

    async def _shared_names(self) -> Collection[str]:
        """Return the file names in the evidence that several documents share. If the lookup fails, return all
        names that might be shared.
        """
        question = self._question
        names = {hit.filename for hit in (*question.shown.blocks, *question.collected.proofs)}
        names -= set(question.collected.evidence.unique_names)
        documents = self._context.searches.documents(question.request)
        try:
            async with asyncio.timeout(_SHARED_NAMES_S):
                return await documents.shared_names(names)
        except (TimeoutError, GroundworkError) as failed:
            get_logger().warning("documents.read_failed", error_type=type(failed).__name__)
            return names

    def _number_check(self) -> NumberCheck:
        question, services = self._question, self._context.services
        return NumberCheck(
            results=[result for turn_results in question.before.results for result in turn_results.tables],
            is_computed=lambda result: recomputed(result, question.request, services, self._time),
            question=f"{question.text}\n{question.request.question}",
            earlier_answers=[turn.answer for turn in question.request.conversation.turns],
            passages=[hit.content for hit in question.shown.blocks if hit.content],
            language=question.stored.plan.language,
            today=question.request.today,
        )

    def _repair_limits(self) -> CallLimits | None:
        if not self._time.left.may_write:
            return None
        timeout_s = self._time.seconds("repair", self._context.services.settings.answering.repair_timeout_s)
        return CallLimits(timeout_s=timeout_s, max_retries=0)

    def _search_warnings(self) -> tuple[str, ...]:
        has_failed = any(turn_results.not_searched for turn_results in self._question.before.results)
        return (self._question.words.gap_not_searched,) if self.writer.gaps and has_failed else ()
