"""Determines the documents of a delegation: their ids, their size and whether the user may read them."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from shared.answering.delegation_request import DelegationRequest
from shared.answering.policy_models import DocScope
from shared.answering.services import SubagentServices
from shared.platform.concurrency import run_together
from shared.platform.errors import GroundworkError
from shared.platform.telemetry import get_logger
from shared.platform.tokens import CHARS_PER_TOKEN
from shared.retrieval.block_reading import DocumentBlocks
from shared.retrieval.document_rows import RowsReadOnce
from shared.retrieval.document_series import repeated_series, series_of, series_words, speaks_of_editions
from shared.retrieval.models import Hit
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.models import RunRequest
from shared.tools.searches import StepSearches, caller_limits

# Maximum number of documents per task. They share a prompt of about 8,000 tokens. Not measured.
MOST_DOCUMENTS = 6
# Time limit of a lookup that delays the answer. After a timeout, no sub-agent is started.
LOOKUP_TIMEOUT_S = 2.0
# Minimum score as a share of the best score. Unrelated passages reached a third to a half of the best score.
_NEAR_BEST = 0.5
# Tokens on a typical page of prose. Not measured.
_PAGE_TOKENS = 500
# Maximum number of series in a comparison of editions. A question about more is treated as another
# comparison.
_MOST_SERIES = 2


def target_documents(delegation_request: DelegationRequest) -> tuple[str, ...]:
    """Return the ids of the documents named by the model, or else by the question, or else by the caller.

    Documents named by the question don't count if the evidence was also searched elsewhere.
    """
    question_ids = delegation_request.stored.doc_ids if delegation_request.evidence.narrowed else ()
    call_ids = delegation_request.call.doc_ids if delegation_request.call else ()
    return tuple(dict.fromkeys(call_ids or question_ids or delegation_request.request.doc_ids))


def task_documents(delegation_request: DelegationRequest, *, compared: bool) -> tuple[str, ...]:
    """Return the ids of the documents to which sub-agents are restricted. An empty tuple means no
    restriction.

    These are the named documents. A comparison of editions without named documents is limited to the editions
    found and the rest of their series. If there are too many, the best ones are returned.
    """
    hit_ids = tuple(dict.fromkeys(hit.doc_id for hit in _fitting(delegation_request.evidence.hits)))
    targets = target_documents(delegation_request)
    if not targets:
        # The subjects of a comparison need not be documents. A third document may describe both of them.
        is_of_editions = compared and _series(delegation_request)
        return (*hit_ids, *delegation_request.series)[:MOST_DOCUMENTS] if is_of_editions else ()
    if len(targets) <= MOST_DOCUMENTS or delegation_request.stored.every_ids:
        # not truncated, because all documents of a kind are divided between several sub-agents
        return targets
    best = [doc_id for doc_id in hit_ids if doc_id in targets]
    return tuple(dict.fromkeys((*best, *targets)))[:MOST_DOCUMENTS]


def text_tokens(text: str) -> int:
    """Estimate the number of tokens in a text."""
    return int(len(text) / CHARS_PER_TOKEN)


def _fitting(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits whose score is close to the best one, in order. Weaker matches are dropped."""
    least = _NEAR_BEST * max((hit.score for hit in hits), default=0.0)
    return [hit for hit in hits if hit.score >= least]


def _series(delegation_request: DelegationRequest) -> list[str]:
    """Return each document series of which the evidence contains several relevant documents."""
    filenames = {hit.doc_id: hit.filename for hit in _fitting(delegation_request.evidence.hits)}
    return list(repeated_series(filenames.values()))


async def with_documents(
    delegation_request: DelegationRequest, services: SubagentServices
) -> DelegationRequest:
    """Return the request with the other documents of the compared series and the size of the target documents
    in tokens. Other kinds of questions are returned unchanged.

    Documents whose page count shows that they don't fit into a prompt are not measured.
    """
    plan = delegation_request.stored.plan
    compared = plan.intent == "compare_docs" or (
        delegation_request.call is not None and delegation_request.call.profile == "comparator"
    )
    if not compared and plan.intent != "doc_summary" and plan.query_type != "DOCUMENT_SUMMARY":
        return delegation_request
    if compared and not target_documents(delegation_request):
        delegation_request = replace(
            delegation_request, series=await rest_of_series(delegation_request, services)
        )
    fitting = _fitting(delegation_request.evidence.hits)
    hit_ids = tuple(dict.fromkeys(hit.doc_id for hit in fitting))[:MOST_DOCUMENTS]
    doc_ids = task_documents(delegation_request, compared=compared) or (hit_ids if compared else ())
    pages = {record.doc_id: record.page_count or 1 for record in delegation_request.evidence.records}
    tokens = sum(pages.get(doc_id, 1) for doc_id in doc_ids) * _PAGE_TOKENS
    if tokens <= services.settings.answering.whole_documents_tokens:
        tokens = await _total_tokens(delegation_request.request, doc_ids, services) or tokens
    return replace(delegation_request, document_tokens=tokens)


async def _total_tokens(request: RunRequest, doc_ids: Sequence[str], services: SubagentServices) -> int:
    """Return the total size of the documents in tokens, or 0 if the lookup fails or times out."""
    blocks = DocumentBlocks(
        SecuredIndex(services.content_index, request.user, RowsReadOnce(services.documents))
    )
    try:
        async with asyncio.timeout(LOOKUP_TIMEOUT_S):
            sizes = await run_together(*(blocks.sizes(doc_id) for doc_id in doc_ids))
    except (GroundworkError, TimeoutError) as failed:
        get_logger().warning("delegation.sizes_late", error_type=type(failed).__name__)
        return 0
    return sum(tokens for of_one in sizes for _, tokens in of_one)


def doc_scope(delegation_request: DelegationRequest) -> DocScope:
    """Return which documents the question is about, and how much of them must be read to answer it."""
    plan, evidence = delegation_request.stored.plan, delegation_request.evidence
    targets = target_documents(delegation_request)
    # A restriction by the caller only limits the search. The question is about the documents that it names
    # itself.
    names_several = evidence.narrowed and len(set(delegation_request.stored.doc_ids)) > 1
    evidence_tokens = sum(text_tokens(hit.content or hit.image_caption or "") for hit in evidence.hits)
    # True for phrases such as "in these filings", if the evidence contains several editions of a series.
    is_about_editions = speaks_of_editions(delegation_request.question) and bool(_series(delegation_request))
    return DocScope(
        target_doc_ids=targets,
        estimated_tokens=delegation_request.document_tokens or evidence_tokens,
        requires_full_document=plan.query_type == "DOCUMENT_SUMMARY",
        multi_document=plan.query_type == "COMPARISON" or names_several or is_about_editions,
    )


async def may_read_targets(delegation_request: DelegationRequest, services: SubagentServices) -> bool:
    """Return whether the user may read all target documents. Documents without evidence are looked up."""
    record_ids = {record.doc_id for record in delegation_request.evidence.records}
    unknown = [doc_id for doc_id in target_documents(delegation_request) if doc_id not in record_ids]
    if not unknown:
        return True
    documents = StepSearches(services).documents(delegation_request.request)
    async with asyncio.timeout(LOOKUP_TIMEOUT_S):
        return set(unknown) <= (await documents.get_many(unknown)).keys()


async def rest_of_series(
    delegation_request: DelegationRequest, services: SubagentServices
) -> tuple[str, ...]:
    """Return the ids of further readable documents of each series that occurs more than once in the evidence.

    "How did it change over the quarters?" is about the whole series, but the best passages come from only a
    few of its documents. A failed lookup is ignored, because a comparison works without them.
    """
    filenames = {hit.doc_id: hit.filename for hit in delegation_request.evidence.hits}
    series = _series(delegation_request)[:_MOST_SERIES]
    documents = StepSearches(services).documents(delegation_request.request)
    try:
        async with asyncio.timeout(LOOKUP_TIMEOUT_S):
            alike = await run_together(
                *(
                    documents.find_named(series_words(one), caller_limits(delegation_request.request))
                    for one in series
                )
            )
    except (GroundworkError, TimeoutError) as failed:
        get_logger().warning("delegation.editions_late", error_type=type(failed).__name__)
        return ()
    return tuple(
        record.doc_id
        for one, records in zip(series, alike, strict=True)
        for record in sorted(records, key=lambda record: record.filename, reverse=True)
        if series_of(record.filename) == one and record.doc_id not in filenames
    )
