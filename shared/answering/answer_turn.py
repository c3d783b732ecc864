"""Takes a turn of the main agent, or of an agent defined in a file. The answer is streamed while its
quotations are checked.

The model streams the answer, calls tools, or names gaps in its evidence. The next turn makes the calls and
searches for the gaps; the answer then continues from where it stopped.
"""

from collections.abc import Sequence

from shared.answering.agent_turn import ModelCall, ModelFailedError
from shared.answering.calls import planned_calls
from shared.answering.earlier_calls import make_calls
from shared.answering.models import Turn
from shared.answering.profiles import main_profile
from shared.answering.run_facts import writing_facts
from shared.answering.script_calls import awaiting_consent, refuse_second_wait, script_call
from shared.answering.statements import from_first_gap, read_gaps, split_turn
from shared.answering.step_context import StepContext
from shared.answering.steps import TakeTurn
from shared.answering.turn_answer import TurnAnswer
from shared.answering.turn_messages import turn_messages, turn_tools
from shared.answering.turn_question import TurnQuestion
from shared.answering.unwritten_answer import nothing_found
from shared.evidence.reader_text import readable
from shared.platform.errors import CallTimeoutError, GroundworkError, ModelFixableError
from shared.platform.language_models.models import CallLimits, ChatModel, ModelTurn
from shared.runs.event_log import EventLog
from shared.runs.events import RunEvent, ThoughtEvent, warning_events
from shared.runs.evidence import Evidence
from shared.runs.models import WritingFacts
from shared.runs.step_time import StepTime
from shared.tools.outside import WEB_TOOLS
from shared.tools.semantic_search import SemanticSearch
from shared.tools.tool_calls import PlannedCall, signature

_MAX_THOUGHT_CHARS = 500


class AnswerTurn:
    """An attempt at one turn of an answer. Implements the callbacks of `agent_turn.take_turn`."""

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
        """Create an attempt at the turn that `action` describes.

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
        self._answer = TurnAnswer(context, question, time)
        self._text = ""
        self._is_written = True  # whether the writer has received the whole of `_text`

    @property
    def chat_model(self) -> ChatModel:
        """The chat model, whose usage is charged to the run's budget."""
        return self._services.chat_model

    async def begin(self) -> None:
        """Execute the tool calls of the previous turn, and create the writer of the answer."""
        opening: list[RunEvent] = [*self._first]
        if not self._before.turns:
            opening += warning_events(self._question.collected.warnings)
            if SemanticSearch.name in self._question.tools:
                opening.append(_thought(self._question.collected.evidence))
        event_log = await self._context.open(*opening)
        await make_calls(self._context, self._action.earlier, self._question, self._time, event_log)
        self._writer = await self._answer.open(event_log)

    async def model_call(self) -> ModelCall | None:
        """Return the input of the model call. Return None if the model can't add anything: there is no
        evidence, or the search for gaps found nothing.

        Raises:
            ModelFailedError: too little time is left.
        """
        turns, results, writer = self._before.turns, self._before.results, self._writer
        # A gap is confirmed only by a search that found nothing. If the search failed, the model must report
        # the gap again.
        nothing_new = bool(turns) and not (turns[-1].calls or results[-1].hits or results[-1].not_searched)
        # Even without documents, an agent's instructions and tools, or the web, may lead to an answer.
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
        settings = self._services.settings.answering
        messages = await turn_messages(self._question, self._services, self._advice)
        limits = CallLimits(
            timeout_s=self._time.seconds("write", settings.answer_timeout_s),
            max_output_tokens=settings.max_answer_tokens,
        )
        self._is_written = False
        return ModelCall(messages, turn_tools(self._question, self._services), limits, self._may_call)

    async def receive_text(self, text: str) -> None:
        """Buffer streamed model text, and add the finished part of it to the answer at intervals."""
        self._text += text
        if self._writer.stream.is_due:
            _, answer = split_turn(self._text, is_answer=not self._may_call)
            await self._writer.write(answer or "", to_gap=self._may_look)

    async def plan_calls(self, turn: ModelTurn) -> Turn | None:
        """Return the turn if it requests tool calls or reports gaps to search for. Return None if its answer
        is final.
        """
        self._is_written = True
        writer, text = self._writer, self._text
        thought, answer = split_turn(text, is_answer=not self._may_call, at_end=True)
        planned = self._plan(turn) if answer is None else ()
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
            said=text, calls=calls, gaps=gaps, answer=self._answer.current(), asks_consent=asks_consent
        )

    async def finish(self, turn: ModelTurn | None) -> Turn:
        """Complete the answer and return the last turn.

        Raises:
            ModelFailedError: the model wrote nothing.
        """
        words, is_cut = self._question.words, turn is not None and turn.cut
        note = words.note.format(words.cut) if is_cut else ""
        await self._writer.finish(note, self._question.collected.web)
        if not self._writer.draft.text.strip():
            raise ModelFailedError(ModelFixableError("The model wrote no answer.", "Ask again."))
        return Turn(said=self._text, answer=self._answer.complete(is_cut=is_cut), is_last=True)

    async def recover(self, error: GroundworkError) -> Turn:
        """Return a last turn with the best possible answer after a model failure.

        Raises:
            GroundworkError: the step should be retried instead.
        """
        if not self._is_written:  # show the complete sentences received before the failure
            _, answer = split_turn(self._text, is_answer=not self._may_call, at_end=True)
            text = answer if answer is not None else split_turn(self._text, is_answer=True, at_end=True)[1]
            await self._writer.write(text or "", to_gap=self._may_look)
        return self._answer.after_failure(error, self._action.tries)

    async def store(self, turn: Turn) -> Turn:
        """Stage the turn, its warnings and its metrics for the journal, and return the turn.

        The end of the text and the turn are appended with the step's completion. A turn with a call that the
        script performs is stored immediately, so that the call is performed only once.
        """
        event_log, turns = await self._context.open_if_needed(), self._before.turns
        turn = turn.model_copy(update={"advice": self._advice})
        sent_warnings = {*self._question.warnings, *(turns[-1].answer.warnings if turns else ())}
        event_log.stage(
            *warning_events(warning for warning in turn.answer.warnings if warning not in sent_warnings)
        )
        await self._context.show(turn.answer)
        await self._context.keep(turn, "turn")
        await self._keep_facts(event_log)
        if turn.asks_consent or script_call(turn) is not None:
            await event_log.write()
        return turn

    def _plan(self, turn: ModelTurn) -> tuple[PlannedCall, ...]:
        previous_calls = [
            signature(item.call.name, item.arguments)
            for earlier in self._before.turns
            for item in earlier.calls
            if item.arguments is not None
        ]
        rules = main_profile(self._question.request.agent).calls
        planned = planned_calls(rules, turn.tool_calls, self._question.tools, previous_calls)
        return refuse_second_wait(planned, may_ask=not self._before.asking_step)

    async def _keep_facts(self, event_log: EventLog) -> None:
        """Stage the metrics of the answer: the time of its first token and the number of available figures.

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
    """Return a THOUGHT event that tells readers how much evidence the answer is based on."""
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
