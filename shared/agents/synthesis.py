"""The writing step: evidence in, a streamed and cited answer out."""

import asyncio
from contextlib import aclosing

from shared.agents.answer_writer import AnswerWriter
from shared.agents.journal import Journal
from shared.agents.prompt_files import load
from shared.agents.quote_repair import QuoteRepairer
from shared.core.cite_parser import AbstainTag
from shared.core.evidence import CitationBook
from shared.core.prompts import documents_with_blocks, documents_with_summaries, element, render
from shared.errors import CallTimeoutError, ModelFixableError, OutputCutError
from shared.models.plan import QuestionPlan
from shared.models.prompts import CallLimits, Prompt
from shared.models.runs import RunAnswer, RunRequest
from shared.models.working import Evidence
from shared.ports import ChatModel

ORGANISATION = "an organisation"
_REPAIR_SECONDS = 10.0
_CUT_NOTE = "\n\n*(The answer was cut off at its length limit.)*"
_NOTHING_FOUND = AbstainTag(
    missing="no document that you may read speaks of this",
    next_step="Name the document, use other words, or ask whoever owns the documents for access.",
)


async def write_answer(
    request: RunRequest,
    plan: QuestionPlan,
    evidence: Evidence,
    *,
    chat_model: ChatModel,
    journal: Journal,
    limits: CallLimits,
) -> RunAnswer:
    """Stream an answer into the journal and return it whole.

    Without evidence no model is asked: there is nothing that it could say.

    Raises:
        CallTimeoutError: the limit for the whole answer passed.
        DependencyError: the model failed; what it had written is to be discarded.
        ModelFixableError: it wrote nothing.
    """
    documents = _documents_xml(evidence)
    writer = AnswerWriter(
        journal=journal,
        book=CitationBook(hits=evidence.hits),
        repairer=QuoteRepairer(
            chat_model,
            documents,
            _repair_limits(limits),
            question=plan.standalone_question or request.question,
        ),
    )
    truncated = False
    if not evidence.hits and not evidence.records:
        writer.abstention = _NOTHING_FOUND
    else:
        truncated = await _stream(writer, chat_model, _prompt(request, plan, documents), limits)
    await writer.finish()
    if not writer.text.strip():
        raise ModelFixableError("The model wrote no answer.", "Ask again, or ask in other words.")
    return RunAnswer(
        run_id=request.run_id,
        text=writer.text,
        citations=tuple(writer.book.citations),
        abstained=writer.abstention is not None and not writer.book.citations,
        unsupported_claims=writer.unsupported_claims,
        truncated=truncated,
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
        await writer.feed(_CUT_NOTE)
        return True
    return False


def _prompt(request: RunRequest, plan: QuestionPlan, documents: str) -> Prompt:
    system = render(
        load("answer"), {"organisation": ORGANISATION, "type_rules": load(f"rules/{plan.query_type}")}
    )
    user = "\n".join(
        (
            element("question", plan.standalone_question or request.question),
            element("query_type", plan.query_type),
            documents,
            element("output_rules", load("output_rules")),
        )
    )
    return Prompt(name="answer", system=system, user=user)


def _documents_xml(evidence: Evidence) -> str:
    if not evidence.hits:
        return documents_with_summaries(evidence.records, evidence.total)
    return documents_with_blocks(evidence.hits, {record.doc_id: record for record in evidence.records})


def _repair_limits(limits: CallLimits) -> CallLimits:
    return CallLimits(timeout_s=min(_REPAIR_SECONDS, limits.timeout_s), max_retries=0, max_output_tokens=400)
