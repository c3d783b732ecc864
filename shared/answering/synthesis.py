"""The writing of an answer: evidence in, a streamed and cited answer out, or what there was when it broke."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from shared.access.models import UserContext
from shared.answering.answer_writer import AnswerWriter, QuoteRepairer, one_line
from shared.evidence.citations import CitationBook
from shared.evidence.cite_parser import AbstainTag
from shared.evidence.document_prompt import documents_with_blocks, documents_with_summaries
from shared.evidence.messages import Messages, messages_for
from shared.evidence.passage_answer import list_documents, quote_passages
from shared.platform.errors import (
    CallTimeoutError,
    DefectError,
    GroundworkError,
    ModelFixableError,
    OutputCutError,
)
from shared.platform.language_models.models import CallLimits, ChatModel, Prompt
from shared.platform.prompts import element, load, render
from shared.platform.telemetry import get_logger
from shared.retrieval.models import Hit
from shared.retrieval.page_figures import FigureFinder
from shared.runs.event_log import EventLog
from shared.runs.models import RunAnswer, RunRequest
from shared.runs.plan import QueryType, QuestionPlan
from shared.runs.step_time import StepTime
from shared.runs.working_memory import Evidence
from shared.subagents.models import FoundProof

DOCUMENT_QUESTIONS: frozenset[QueryType] = frozenset({"LISTING", "METADATA_SEARCH"})
_FOUND_BY_CONTENT = ("rag_semantic_search (passages and figures by meaning and by words)",)
_FOUND_BY_METADATA = ("rag_list_documents (documents by their attributes)",)


def answer_prompt(
    request: RunRequest, plan: QuestionPlan, documents: str, organisation: str, findings: str = ""
) -> Prompt:
    """The prompt for one answer.

    Args:
        documents: what `documents_xml` made of the evidence.
        organisation: whose documents these are: a name from a setting, no data.
        findings: `<findings>` of sub-agents (core/delegation_findings.py); empty = there are none.
    """
    is_about_documents = plan.query_type in DOCUMENT_QUESTIONS
    system = rag_system_prompt(
        organisation, plan.query_type, _FOUND_BY_METADATA if is_about_documents else _FOUND_BY_CONTENT
    )
    user = "\n".join(
        (
            element("question", plan.standalone_question or request.question),
            element("query_type", plan.query_type),
            element("today", request.created_at.date().isoformat()),
            *_asker(request.user),
            documents,
            *([findings] if findings else ()),
            element("output_rules", load("answering", "output_rules")),
        )
    )
    if findings:
        system = f"{system}\n\n{load('answering', 'findings')}"
    return Prompt(name="answer", system=system, user=user)


def rag_system_prompt(organisation: str, query_type: QueryType, tools: Sequence[str]) -> str:
    """The rules for a question of one type.

    Args:
        tools: what found the material, each with what it does.
    """
    return render(
        load("answering", "answer"),
        {
            "organisation": organisation,
            "type_rules": load("answering", f"rules/{query_type}"),
            "tools": "; ".join(tools),
        },
    )


def documents_xml(evidence: Evidence) -> str:
    """`<documents>`: blocks where there are any, else descriptions of documents."""
    if not evidence.hits:
        return documents_with_summaries(evidence.records, evidence.total)
    return documents_with_blocks(evidence.hits, {record.doc_id: record for record in evidence.records})


def _asker(user: UserContext) -> list[str]:
    """What helps to understand the question; never an id, a group or a role."""
    known = {"asker_name": user.name, "asker_department": user.department}
    return [element(tag, value) for tag, value in known.items() if value]


ORGANISATION = "an organisation"
_REPAIR_SECONDS = 10.0
_REPAIR_TOKENS = 400
_FIGURES_SECONDS = 2.5  # an embedding and a search: 0.1 s; unmeasured with a real model
_MOST_CHARS_PER_TOKEN = 8  # of German compounds some 6; a model that writes more ignores its limit


class AnswerBrokenError(Exception):
    """The model failed while the answer was written; it never leaves the step that writes.

    Attributes:
        failed: why.
        partial: what stands all the same, in whole sentences; None = nothing that is worth reading. Readers
            have another text.
    """

    def __init__(self, failed: GroundworkError, partial: RunAnswer | None) -> None:
        super().__init__(failed.detail)
        self.failed = failed
        self.partial = partial


@dataclass(frozen=True)
class Task:
    """What an answer is written from and to.

    Attributes:
        findings: of sub-agents, as an element of the prompt.
        proofs: quotations out of the documents that the question is about, found by sub-agents.
        aside: Markdown of our own for the end of the answer.
        warnings: what went wrong before, in words; told at the end of the answer.
        organisation: whose documents these are, in the words of the prompt.
    """

    request: RunRequest
    plan: QuestionPlan
    evidence: Evidence
    findings: str = ""
    proofs: tuple[FoundProof, ...] = ()
    aside: str = ""
    warnings: tuple[str, ...] = ()
    organisation: str = ORGANISATION

    @property
    def question(self) -> str:
        """In words that stand alone."""
        return self.plan.standalone_question or self.request.question

    @property
    def words(self) -> Messages:
        """Our own, in the question's language."""
        words = messages_for(self.request.question)
        return words.without_search if self.evidence.unfinished and self.is_empty else words

    def notes(self, *more: str) -> tuple[str, ...]:
        """What stands at the end of the answer."""
        warnings = dict.fromkeys((*self.warnings, *more))
        noted = [self.words.note.format(warning) for warning in warnings if warning]
        return tuple(filter(None, (self.aside, *noted)))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write from."""
        return not (self.evidence.hits or self.evidence.records or self.findings)


async def write_answer(
    task: Task,
    *,
    chat_model: ChatModel,
    event_log: EventLog,
    time: StepTime,
    limits: CallLimits,
    page_figures: FigureFinder | None = None,
) -> RunAnswer:
    """Stream an answer into the event_log and return it whole.

    Without evidence no model is asked: there is nothing that it could say.

    Args:
        limits: of writing, as set; what remains of the run's time may be less.
        page_figures: finds pictures on the pages of the evidence; None = none but those in it.

    Raises:
        AnswerBrokenError: the model failed, was late, or wrote nothing.
    """
    evidence = task.evidence
    figures = await _figures(task.question, evidence.hits, page_figures, time)
    evidence = evidence.model_copy(update={"hits": (*evidence.hits, *figures)})
    documents = documents_xml(evidence)
    writer = AnswerWriter(
        event_log=event_log,
        book=_book(task, evidence),
        repairer=QuoteRepairer(
            chat_model, documents, lambda: _repair_limits(time, limits), question=task.question
        ),
        words=task.words,
        dates={record.doc_id: record.upload_date for record in evidence.records},
        proofs=task.proofs,
    )
    if task.is_empty:
        writer.abstain(_nothing_found(task.words))
        await writer.finish(task.notes())
        return _answer(task, writer)
    prompt = answer_prompt(task.request, task.plan, documents, task.organisation, task.findings)
    within = limits.model_copy(update={"timeout_s": time.seconds("write", limits.timeout_s)})
    try:
        truncated = await _stream(writer, chat_model, prompt, within)
    except _ModelFailedError as broken:
        raise AnswerBrokenError(broken.failed, _partial(task, writer, broken.failed)) from broken
    cut = (task.words.cut,) if truncated else ()
    await writer.finish(task.notes(*cut))
    if not writer.text.strip():
        nothing = ModelFixableError("The model wrote no answer.", "Ask again, or ask in other words.")
        raise AnswerBrokenError(nothing, None)
    return _answer(task, writer, truncated=truncated, warnings=cut)


def answer_without_model(task: Task, why: GroundworkError) -> RunAnswer:
    """What the evidence says word for word; an abstention when there is none. Readers do not have it yet."""
    words, book = task.words, _book(task, task.evidence)
    late = isinstance(why, CallTimeoutError)
    warning = words.not_written_in_time if late else words.not_written
    text = quote_passages(task.question, book, words) or list_documents(task.evidence.records, words)
    gap = None if text else _nothing_found(words)
    if gap is not None:
        text = f"{words.no_answer.format(gap.missing)}\n\n{words.next_step.format(gap.next_step)}"
    return RunAnswer(
        run_id=task.request.run_id,
        text="\n\n".join((text, *task.notes(warning))),
        citations=tuple(book.citations),
        abstained=gap is not None,
        missing=gap.missing if gap else "",
        next_step=gap.next_step if gap else "",
        warnings=tuple(dict.fromkeys((*task.warnings, warning))),
    )


def _partial(task: Task, writer: AnswerWriter, failed: GroundworkError) -> RunAnswer | None:
    """What was written, in whole sentences; None when it proves nothing: passages say more then."""
    warning = task.words.late if isinstance(failed, CallTimeoutError) else task.words.broken
    writer.break_off(task.notes(warning))
    proves = writer.has_citations or not writer.book.hits
    if not writer.text or not (proves or writer.abstention):
        return None
    return _answer(task, writer, truncated=True, warnings=(warning,))


def _answer(
    task: Task, writer: AnswerWriter, *, truncated: bool = False, warnings: tuple[str, ...] = ()
) -> RunAnswer:
    gap = writer.abstention
    return RunAnswer(
        run_id=task.request.run_id,
        text=writer.text,
        citations=tuple(writer.book.citations),
        abstained=not writer.is_answer,
        missing=one_line(gap.missing) if gap else "",
        next_step=one_line(gap.next_step) if gap else "",
        unsupported_claims=writer.unsupported_claims,
        truncated=truncated,
        figures=tuple(writer.figures.placed),
        conflicts=tuple(writer.conflicts),
        warnings=tuple(dict.fromkeys((*task.warnings, *warnings))),
    )


class _ModelFailedError(Exception):
    """It is the model that failed, not the storage that the answer is written to."""

    def __init__(self, failed: GroundworkError) -> None:
        super().__init__(failed.detail)
        self.failed = failed


async def _stream(writer: AnswerWriter, chat_model: ChatModel, prompt: Prompt, limits: CallLimits) -> bool:
    """Feed the model's text to the writer; True when the model stopped, or was, at its length limit."""
    until = asyncio.get_running_loop().time() + limits.timeout_s
    chars_left = limits.max_output_tokens * _MOST_CHARS_PER_TOKEN
    async with aclosing(chat_model.stream(prompt, limits)) as deltas:
        try:
            while (delta := await _next(deltas, until)) is not None:
                await writer.feed(delta)
                chars_left -= len(delta)
                if chars_left < 0:
                    return True
        except OutputCutError:
            return True
    return False


async def _next(deltas: AsyncGenerator[str, None], until: float) -> str | None:
    """The next piece; None at the end.

    Raises:
        OutputCutError: the model stopped at its length limit.
    """
    late = CallTimeoutError("The model did not finish its answer in time.", "Ask again, or ask for less.")
    try:
        # A model that never lets us wait would never be late for `asyncio.timeout_at` alone.
        if asyncio.get_running_loop().time() >= until:
            raise _ModelFailedError(late)
        async with asyncio.timeout_at(until):
            return await anext(deltas, None)
    except TimeoutError as passed:
        raise _ModelFailedError(late) from passed
    except (OutputCutError, DefectError):
        raise
    except GroundworkError as failed:
        raise _ModelFailedError(failed) from failed


async def _figures(
    question: str, hits: Sequence[Hit], page_figures: FigureFinder | None, time: StepTime
) -> Sequence[Hit]:
    """Pictures beside the evidence; an answer can do without them, so no failure ends it."""
    if page_figures is None:
        return ()
    try:
        async with asyncio.timeout(time.seconds("figures", _FIGURES_SECONDS)):
            return await page_figures.near(question, hits)
    except TimeoutError:
        get_logger().warning("figures.not_found", error_type=CallTimeoutError.code)
    except GroundworkError as failed:
        get_logger().warning("figures.not_found", error_type=failed.code)
    return ()


def _book(task: Task, evidence: Evidence) -> CitationBook:
    source_urls = {record.doc_id: record.source_url for record in evidence.records if record.source_url}
    return CitationBook(hits=evidence.hits, source_urls=source_urls, run_id=task.request.run_id)


def _nothing_found(words: Messages) -> AbstainTag:
    return AbstainTag(missing=words.nothing_found, next_step=words.nothing_found_step)


def _repair_limits(time: StepTime, limits: CallLimits) -> CallLimits | None:
    if not time.left.may_write:
        return None
    timeout_s = time.seconds("repair", min(_REPAIR_SECONDS, limits.timeout_s))
    return CallLimits(timeout_s=timeout_s, max_retries=0, max_output_tokens=_REPAIR_TOKENS)
