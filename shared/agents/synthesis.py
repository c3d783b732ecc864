"""The writing step: evidence in, a streamed and cited answer out."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

from shared.agents.answer_prompt import answer_prompt, documents_xml
from shared.agents.answer_writer import AnswerWriter, one_line
from shared.agents.journal import Journal
from shared.agents.quote_repair import QuoteRepairer
from shared.core.cite_parser import AbstainTag
from shared.core.evidence import CitationBook
from shared.core.own_words import OwnWords, own_words
from shared.errors import CallTimeoutError, GroundworkError, ModelFixableError, OutputCutError
from shared.models.plan import QuestionPlan
from shared.models.prompts import CallLimits, Prompt
from shared.models.runs import RunAnswer, RunRequest
from shared.models.search import Hit
from shared.models.working import Evidence
from shared.ports import ChatModel
from shared.retrieval.page_figures import PageFigures
from shared.telemetry import get_logger

ORGANISATION = "an organisation"
_REPAIR_SECONDS = 10.0


async def write_answer(
    request: RunRequest,
    plan: QuestionPlan,
    evidence: Evidence,
    *,
    chat_model: ChatModel,
    journal: Journal,
    limits: CallLimits,
    page_figures: PageFigures | None = None,
    organisation: str = ORGANISATION,
) -> RunAnswer:
    """Stream an answer into the journal and return it whole.

    Without evidence no model is asked: there is nothing that it could say.

    Args:
        page_figures: finds pictures on the pages of the evidence; None = none but those in it.
        organisation: whose documents these are, in the words of the prompt.

    Raises:
        CallTimeoutError: the limit for the whole answer passed.
        DependencyError: the model failed; what it had written is to be discarded.
        ModelFixableError: it wrote nothing.
    """
    question = plan.standalone_question or request.question
    words = own_words(request.question)
    evidence = evidence.model_copy(
        update={"hits": (*evidence.hits, *await _figures(question, evidence.hits, page_figures))}
    )
    documents = documents_xml(evidence)
    writer = AnswerWriter(
        journal=journal,
        book=CitationBook(hits=evidence.hits, source_urls=_source_urls(evidence)),
        repairer=QuoteRepairer(chat_model, documents, _repair_limits(limits), question=question),
        words=words,
        dates={record.doc_id: record.upload_date for record in evidence.records},
    )
    truncated = False
    if not evidence.hits and not evidence.records:
        writer.abstain(_nothing_found(words))
    else:
        prompt = answer_prompt(request, plan, documents, organisation)
        truncated = await _stream(writer, chat_model, prompt, limits)
    await writer.finish(words.cut if truncated else "")
    if not writer.text.strip():
        raise ModelFixableError("The model wrote no answer.", "Ask again, or ask in other words.")
    return _answer(request.run_id, writer, truncated=truncated)


def _answer(run_id: str, writer: AnswerWriter, *, truncated: bool) -> RunAnswer:
    gap = writer.abstention
    return RunAnswer(
        run_id=run_id,
        text=writer.text,
        citations=tuple(writer.book.citations),
        abstained=not writer.is_answer,
        missing=one_line(gap.missing) if gap else "",
        next_step=one_line(gap.next_step) if gap else "",
        unsupported_claims=writer.unsupported_claims,
        truncated=truncated,
        figures=tuple(writer.figures.placed),
        conflicts=tuple(writer.conflicts),
    )


async def _stream(writer: AnswerWriter, chat_model: ChatModel, prompt: Prompt, limits: CallLimits) -> bool:
    """Feed the model's text to the writer; True when the model stopped at its length limit."""
    try:
        async with asyncio.timeout(limits.timeout_s), aclosing(chat_model.stream(prompt, limits)) as deltas:
            async for delta in deltas:
                await writer.feed(delta)
    except TimeoutError as late:
        raise CallTimeoutError(
            f"The model did not finish within {limits.timeout_s:g} s.",
            "Ask again, or raise ANSWER_TIMEOUT_S.",
        ) from late
    except OutputCutError:
        return True
    return False


async def _figures(question: str, hits: Sequence[Hit], page_figures: PageFigures | None) -> Sequence[Hit]:
    """Pictures beside the evidence; an answer can do without them, so no failure ends it."""
    if page_figures is None:
        return ()
    try:
        return await page_figures.near(question, hits)
    except GroundworkError as failed:
        get_logger().warning("figures.not_found", error_type=failed.code)
        return ()


def _source_urls(evidence: Evidence) -> dict[str, str]:
    return {record.doc_id: record.source_url for record in evidence.records if record.source_url}


def _nothing_found(words: OwnWords) -> AbstainTag:
    return AbstainTag(missing=words.nothing_found, next_step=words.nothing_found_step)


def _repair_limits(limits: CallLimits) -> CallLimits:
    return CallLimits(timeout_s=min(_REPAIR_SECONDS, limits.timeout_s), max_retries=0, max_output_tokens=400)
