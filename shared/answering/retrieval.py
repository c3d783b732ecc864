"""The gathering steps: evidence for a plan, within the limits that the caller set."""

import asyncio
from collections.abc import Callable, Sequence

from shared.answering.clarification import MAX_NAMED, Resolution, options_of, resolve_references
from shared.answering.planning import documents_before
from shared.conversations.window import cited_before
from shared.evidence.messages import messages_for
from shared.platform.concurrency import run_together
from shared.platform.errors import CallTimeoutError
from shared.platform.language_models.models import CallLimits, ChatModel
from shared.platform.search import Filters
from shared.platform.telemetry import get_logger
from shared.retrieval.blocks import MAX_TOP_K, BlockSearch
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.models import DocumentRecord, Hit
from shared.retrieval.reranking import grade, rerank
from shared.runs.models import RunRequest
from shared.runs.plan import QuestionPlan
from shared.runs.working_memory import Evidence, StoredPlan
from shared.tools.searches import caller_limits

FEWEST_KEPT = 3  # whether these hold an answer is for its writer to say; unmeasured


async def refine(
    question: str, evidence: Evidence, chat_model: ChatModel, limits: Callable[[], CallLimits]
) -> Evidence:
    """The evidence, best first; a model that fails leaves it as it was.

    Args:
        limits: of a call that begins now; there are two, one after the other.
    """
    ranked = await rerank(question, evidence.hits, chat_model, limits())
    helpful = await grade(question, ranked, chat_model, limits())
    kept = {hit.block_id for hit in (*helpful, *ranked[:FEWEST_KEPT])}
    hits = tuple(hit for hit in ranked if hit.block_id in kept)
    shown = {hit.doc_id for hit in hits}
    records = tuple(record for record in evidence.records if record.doc_id in shown)
    return evidence.model_copy(update={"hits": hits, "records": records})


_NEWEST = 100
_LISTED = 50
_MAX_REFERENCES = 6
_FEWEST_OF_EACH = 3  # blocks of each document of a comparison
_DESCRIBING_S = 2.0  # one search by ids: it takes 10 ms


async def resolve_documents(request: RunRequest, stored: StoredPlan, documents: DocumentSearch) -> StoredPlan:
    """The plan with the documents that its references mean, or with options to choose among."""
    plan = stored.plan
    before = documents_before(request, plan)
    if before:
        # Looked up again: rights may have changed since that answer, and the caller's limits hold for each.
        known = await documents.get_many(before[:MAX_NAMED])
        within = tuple(doc_id for doc_id in before if doc_id in known and _is_within(request, known[doc_id]))
        return stored.model_copy(update={"doc_ids": within})
    resolution = await _resolve(request, plan, documents, may_ask=not request.doc_ids)
    return stored.model_copy(
        update={
            "doc_ids": tuple(record.doc_id for record in resolution.documents),
            "reference": resolution.reference,
            "options": options_of(resolution.candidates),
        }
    )


async def gather_documents(request: RunRequest, stored: StoredPlan, documents: DocumentSearch) -> Evidence:
    """Documents for a listing or metadata question: those that the user may read, as far as they fit."""
    plan = stored.plan
    filters = caller_limits(request)
    if stored.doc_ids and plan.query_type == "METADATA_SEARCH":
        known_ones = await documents.get_many(stored.doc_ids)
        return Evidence(records=tuple(known_ones.values()))
    known, total = await documents.newest(filters, _NEWEST)
    found = await documents.find(" ".join((plan.standalone_question, *plan.keywords)), filters, _LISTED)
    if plan.query_type == "LISTING":
        # A listing begins with what matches best; of what does not fit, `total` tells the number.
        ordered = {record.doc_id: record for record in [*found, *known]}
        return Evidence(records=tuple(ordered.values())[:_LISTED], total=total)
    if not found:
        return Evidence(records=tuple(known)[:_LISTED], total=total)
    return Evidence(records=tuple(found))


async def gather_blocks(
    request: RunRequest,
    stored: StoredPlan,
    search: tuple[BlockSearch, DocumentSearch],
    *,
    top_k: int,
    widened: bool,
    attempt: int = 1,
) -> Evidence:
    """Blocks for a question about content; narrowed to the documents that it names, unless `widened`.

    A second attempt searches by other phrasings too, and takes twice as many blocks.
    """
    blocks, documents = search
    filters = caller_limits(request)
    named = () if widened else stored.doc_ids
    queries = phrasings(request, stored.plan, attempt)
    wanted = min(top_k * attempt, MAX_TOP_K)
    if len(named) > 1:
        hits = await _from_each(blocks, queries, filters, named, wanted)
    else:
        hits = await blocks.search(queries, wanted, filters | _limit_to(named))
    return Evidence(
        hits=tuple(hits),
        records=await _described(hits, documents),
        narrowed=bool(named),
        warnings=_warnings(request, blocks),
    )


def phrasings(request: RunRequest, plan: QuestionPlan, attempt: int) -> tuple[str, ...]:
    """What to search for: from the second attempt on also the bare keywords and the question as asked."""
    first = (plan.standalone_question, *plan.search_queries)
    if attempt == 1:
        return first
    return tuple(dict.fromkeys((*first, " ".join(plan.keywords), request.question)))


async def _described(hits: Sequence[Hit], documents: DocumentSearch) -> tuple[DocumentRecord, ...]:
    """Titles and dates of the documents of some blocks: an answer can do without them."""
    try:
        async with asyncio.timeout(_DESCRIBING_S):
            return tuple((await documents.get_many([hit.doc_id for hit in hits])).values())
    except (TimeoutError, CallTimeoutError):
        get_logger().warning("documents.undescribed", error_type=CallTimeoutError.code)
        return ()


def _warnings(request: RunRequest, blocks: BlockSearch) -> tuple[str, ...]:
    words = messages_for(request.question)
    said = {"meaning": words.words_alone, "late": words.searches_late}
    return tuple(said[what] for what in sorted(blocks.missed))


async def _resolve(
    request: RunRequest, plan: QuestionPlan, documents: DocumentSearch, *, may_ask: bool
) -> Resolution:
    references = tuple(
        dict.fromkeys(name for reference in plan.document_references if (name := reference.strip()))
    )[:_MAX_REFERENCES]
    filters = caller_limits(request)
    found = await run_together(*(documents.find_named(reference, filters) for reference in references))
    before = cited_before(request.conversation)
    return resolve_references(
        plan.standalone_question,
        plan.query_type,
        dict(zip(references, found, strict=True)),
        before.doc_ids if before else (),
        may_ask=may_ask,
    )


async def _from_each(
    blocks: BlockSearch, queries: Sequence[str], filters: Filters, named: Sequence[str], top_k: int
) -> list[Hit]:
    """As many blocks of each named document as fit, so that no side of a comparison is missing."""
    share = max(_FEWEST_OF_EACH, -(-top_k // len(named)))
    found = await run_together(
        *(blocks.search(queries, share, filters | _limit_to([doc_id])) for doc_id in named)
    )
    return [hit for hits in found for hit in hits]


def _is_within(request: RunRequest, record: DocumentRecord) -> bool:
    is_chosen = not request.doc_ids or record.doc_id in request.doc_ids
    return is_chosen and request.project_id in (None, "", record.project_id)


def _limit_to(doc_ids: Sequence[str]) -> Filters:
    return {"doc_id": tuple(doc_ids)} if doc_ids else {}
