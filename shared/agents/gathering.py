"""The gathering steps: evidence for a plan, within the limits that the caller set."""

from collections.abc import Sequence

from shared.core.document_names import match_references
from shared.models.documents import DocumentRecord
from shared.models.plan import QuestionPlan
from shared.models.runs import RunRequest
from shared.models.search import Filters, Hit
from shared.models.working import Evidence
from shared.retrieval.blocks import BlockSearch
from shared.retrieval.documents import DocumentSearch

_NAME_CANDIDATES = 100
_LISTED = 50
_MAX_COMPARED = 6


async def gather_documents(request: RunRequest, plan: QuestionPlan, documents: DocumentSearch) -> Evidence:
    """Documents for a listing or metadata question: those that the user may read, as far as they fit."""
    filters = _caller_limits(request)
    known, total = await documents.newest(filters, _NAME_CANDIDATES)
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
    plan: QuestionPlan,
    search: tuple[BlockSearch, DocumentSearch],
    *,
    top_k: int,
    widened: bool,
) -> Evidence:
    """Blocks for a question about content; narrowed to the documents that it names, unless `widened`."""
    blocks, documents = search
    filters = _caller_limits(request)
    named = [] if widened else await _named_documents(plan, documents, filters)
    queries = (plan.standalone_question, *plan.search_queries)
    if len(named) > 1:
        hits = await _from_each(blocks, queries, filters, named, top_k)
    else:
        hits = await blocks.search(queries, top_k, filters | _limit_to(named))
    records = await documents.get_many([hit.doc_id for hit in hits])
    return Evidence(hits=tuple(hits), records=tuple(records.values()), narrowed=bool(named))


async def _named_documents(
    plan: QuestionPlan, documents: DocumentSearch, filters: Filters
) -> list[DocumentRecord]:
    """The documents that the question names; none when it names too many to be about these."""
    references = tuple(name for reference in plan.document_references if (name := reference.strip()))
    if not references:
        return []
    newest = await documents.list_documents(filters, limit=_NAME_CANDIDATES)
    # Among many documents, one that is named by its file may be older than the newest ones.
    by_name = await documents.list_documents(filters | {"filename": references}, limit=_NAME_CANDIDATES)
    named = match_references(references, [*by_name, *newest])
    return list(named) if len(named) <= _MAX_COMPARED else []


async def _from_each(
    blocks: BlockSearch,
    queries: Sequence[str],
    filters: Filters,
    named: Sequence[DocumentRecord],
    top_k: int,
) -> list[Hit]:
    """As many blocks of each named document as fit, so that no side of a comparison is missing."""
    share = max(3, -(-top_k // len(named)))
    hits: list[Hit] = []
    for record in named:
        hits += await blocks.search(queries, share, filters | _limit_to([record]))
    return hits


def _caller_limits(request: RunRequest) -> Filters:
    limits: Filters = {}
    if request.project_id:
        limits["project_id"] = request.project_id
    if request.doc_ids:
        limits["doc_id"] = request.doc_ids
    return limits


def _limit_to(named: Sequence[DocumentRecord]) -> Filters:
    return {"doc_id": tuple(record.doc_id for record in named)} if named else {}
