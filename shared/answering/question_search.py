"""Searches for the evidence on a question: passages of the named or of all documents, and figures on the
pages of the passages.
"""

import asyncio
import re
from collections.abc import Sequence

from shared.answering.document_references import MAX_READ
from shared.answering.found_documents import DESCRIBING_S, FoundDocuments
from shared.answering.named_documents import own_files
from shared.evidence.messages import ENGLISH, messages_in
from shared.platform.concurrency import run_together
from shared.platform.errors import GroundworkError
from shared.platform.settings_groups.answers import AnsweringSettings
from shared.platform.telemetry import get_logger
from shared.platform.tokens import tokens_of
from shared.retrieval.block_reading import DocumentBlocks
from shared.retrieval.blocks import BlockSearch
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.fusion import top_score
from shared.retrieval.models import DocumentRecord, Hit
from shared.retrieval.rankings import Ranking
from shared.runs.evidence import Evidence, StoredPlan
from shared.runs.models import RunRequest
from shared.runs.plan import QuestionPlan
from shared.tools.searches import caller_limits

# Minimum number of blocks per named document.
_FEWEST_OF_EACH = 3
# Minimum score at which a search within the named documents counts as successful. Not measured.
WEAK_SCORE = 0.5
# Minimum lead of another document's score over the named documents' scores. Same value as
# high_score_spread_clarity in docs/internals/delegation.md.
CLEARLY_BETTER = 0.15
# Number of blocks from all attached files together. Each file contributes at least _FEWEST_OF_EACH. Not
# measured.
_BLOCKS_OF_FILES = 8
# Minimum number of tokens that a page is assumed to have. It shows from the page count that a document is too
# long to be read whole.
_LEAST_PAGE_TOKENS = 100
_SHARE_FOR_A_FACT = 0.25
# Number of additional blocks fetched to replace blocks that are only headings. At most three headings were
# observed.
_HEADINGS = 6
# Number of best pages whose figures are considered. An answer usually cites three or four pages. Not
# measured.
_FIGURE_PAGES = 8
# Maximum number of figures in the evidence. Not measured.
_MAX_FIGURES = 4
# Minimum score of a figure, as a share of the best block's score. Unrelated figures score far less. Not
# measured.
_NEAR_BEST = 0.5


class QuestionSearch:
    """The search for evidence on a question. It starts with the original wording while the question is being
    planned.
    """

    def __init__(
        self,
        request: RunRequest,
        blocks: BlockSearch,
        documents: DocumentSearch,
        whole: DocumentBlocks,
    ) -> None:
        self._request = request
        self._blocks = blocks
        self._whole = whole
        self._found_documents = FoundDocuments(documents, whole)
        self._filters = caller_limits(request)
        self._words = ENGLISH
        self._headings: set[str] = set()
        self._first_look = asyncio.create_task(blocks.rank_each([request.question], self._filters))
        # If the plan rewrites the question, nothing awaits this task. Retrieve its exception, so that asyncio
        # logs no warning.
        self._first_look.add_done_callback(lambda task: task.cancelled() or task.exception())

    def stop(self) -> None:
        """Cancel the search for the original wording if it is still running."""
        self._first_look.cancel()

    async def evidence(self, stored: StoredPlan, settings: AnsweringSettings) -> Evidence:
        """Return the best blocks for all phrasings of the question. Named documents have priority if they
        contain relevant blocks.

        Documents that the plan names or the caller chose are included whole if they are short enough. The
        same applies to versions of one document, since the beginning of one states which version is in force.
        """
        self._words = messages_in(stored.plan.language)
        own = tuple(one for one in own_files(self._request, stored) if one not in stored.doc_ids)
        evidence, from_files = await run_together(
            self._best(stored, settings.answer_blocks), self._of_files(stored, own[:MAX_READ])
        )
        if from_files is not None:
            # The user attached these files to the conversation, so include them whatever else is found.
            evidence = _merge(from_files, evidence).model_copy(update={"narrowed": evidence.narrowed})
        is_about_named = evidence.narrowed or stored.plan.query_type == "COMPARISON"
        target_ids = (stored.doc_ids if is_about_named else ()) or self._request.doc_ids or own[:MAX_READ]
        about = target_ids or _versions(evidence)
        max_tokens = settings.whole_documents_tokens
        if stored.plan.intent == "fact_lookup" or not target_ids:
            # A fact is stated in one place, which the search finds, so whole documents may only take the
            # space of passages.
            max_tokens = int(max_tokens * _SHARE_FOR_A_FACT)
        rest = await self._rest_of(about, evidence, max_tokens)
        if rest is None:
            return evidence
        return evidence.model_copy(
            update={"hits": (*evidence.hits, *rest), "whole": tuple(dict.fromkeys(about))}
        )

    async def _of_files(self, stored: StoredPlan, doc_ids: tuple[str, ...]) -> Evidence | None:
        """Return the best blocks of each attached file, or None if `doc_ids` is empty."""
        if not doc_ids:
            return None
        within, _ = await run_together(
            self._rank_named(stored.model_copy(update={"doc_ids": doc_ids})),
            self._found_documents.describe(dict.fromkeys(doc_ids, "")),
        )
        hits = await self._best_of_each(within, _BLOCKS_OF_FILES)
        return self._described(hits, [ranking for rankings in within for ranking in rankings])

    async def _rest_of(self, doc_ids: Sequence[str], evidence: Evidence, max_tokens: int) -> list[Hit] | None:
        """Return the blocks of the documents that `evidence` lacks, in reading order. Return None if the
        whole documents don't fit into `max_tokens`.
        """
        if not 0 < len(doc_ids) <= MAX_READ or self._blocks.missed:
            return None
        pages = {record.doc_id: record.page_count or 1 for record in evidence.records}
        if sum(pages.get(doc_id, 1) for doc_id in doc_ids) * _LEAST_PAGE_TOKENS > max_tokens:
            return None
        try:
            async with asyncio.timeout(DESCRIBING_S):
                documents = await run_together(*(self._whole.whole(doc_id) for doc_id in doc_ids))
        except (TimeoutError, GroundworkError) as failed:
            get_logger().warning("documents.read_failed", error_type=type(failed).__name__)
            return None
        blocks = [hit for document in documents for hit in document]
        tokens = sum(tokens_of(hit.content or hit.image_caption or "") for hit in blocks)
        if tokens > max_tokens or not all(documents):
            return None
        block_ids = {hit.block_id for hit in evidence.hits}
        return [hit for hit in blocks if hit.block_id not in block_ids]

    async def _best(self, stored: StoredPlan, top_k: int) -> Evidence:
        if not stored.doc_ids:
            return await self._evidence(await self._anywhere(stored.plan), top_k)
        within, _ = await run_together(
            self._rank_named(stored), self._found_documents.describe(dict.fromkeys(stored.doc_ids, ""))
        )
        hits = await self._best_of_each(within, top_k)
        empty = self._without_text(stored.doc_ids, within)
        if len(empty) == len(set(stored.doc_ids)):
            # Don't search elsewhere, because passages of other documents with similar names would mislead.
            return Evidence(narrowed=True, unreadable=empty, warnings=self._warnings)
        ranked = [ranking for rankings in within for ranking in rankings]
        of_named = self._described(hits, ranked, narrowed=True).model_copy(update={"unreadable": empty})
        is_fixed = stored.is_choice or stored.every_ids or self._are_named_by_file(stored)
        if is_fixed or not _may_mean_others(stored, hits):
            return of_named
        elsewhere = await self._evidence(await self._anywhere(stored.plan), top_k)
        if not elsewhere.hits or _top(elsewhere.hits) < _top(hits) + CLEARLY_BETTER:
            return of_named
        return _merge(of_named, elsewhere) if stored.plan.query_type == "COMPARISON" else elsewhere

    def _are_named_by_file(self, stored: StoredPlan) -> bool:
        """Return whether the question names its documents by their file names, so that it can't mean other
        documents.
        """
        references = {reference.strip().casefold() for reference in stored.plan.document_references}
        records = self._found_documents.records
        filenames = {records[one].filename.casefold() for one in stored.doc_ids if one in records}
        return bool(filenames) and filenames <= references

    def _without_text(
        self, doc_ids: Sequence[str], within: Sequence[Sequence[Ranking]]
    ) -> tuple[DocumentRecord, ...]:
        """Return the records of the documents that have no blocks, because no search within them found
        anything.
        """
        if self._blocks.missed:
            return ()
        empty = [
            doc_id
            for doc_id, rankings in zip(doc_ids, within, strict=True)
            if not any(ranking.hits for ranking in rankings)
        ]
        records = self._found_documents.records
        return tuple(records[doc_id] for doc_id in dict.fromkeys(empty) if doc_id in records)

    async def _anywhere(self, plan: QuestionPlan) -> list[Ranking]:
        queries = phrasings(plan)
        if queries[0] != self._request.question:
            return await self._blocks.rank_each(queries, self._filters)
        look = self._first_look
        if look.done() and (look.cancelled() or look.exception()):
            return await self._blocks.rank_each(queries, self._filters)
        first_rankings, others = await run_together(look, self._blocks.rank_each(queries[1:], self._filters))
        return [*first_rankings, *others]

    async def _rank_named(self, stored: StoredPlan) -> Sequence[Sequence[Ranking]]:
        """Return, for each named document, the rankings of its blocks for all phrasings."""
        return await run_together(
            *(
                self._blocks.rank_each(phrasings(stored.plan), {**self._filters, "doc_id": (doc_id,)})
                for doc_id in stored.doc_ids
            )
        )

    async def _best_of_each(self, within: Sequence[Sequence[Ranking]], top_k: int) -> list[Hit]:
        """Return the best blocks of each named document. Each gets an equal share, so that no side of a
        comparison is missing.
        """
        share = max(_FEWEST_OF_EACH, -(-top_k // len(within)))
        hit_lists = await run_together(*(self._without_headings(rankings, share) for rankings in within))
        return [hit for hits in hit_lists for hit in hits]

    async def _without_headings(self, rankings: Sequence[Ranking], top_k: int) -> list[Hit]:
        """Return the best `top_k` blocks of merged rankings, leaving out blocks that are only headings."""
        hits = await self._blocks.merge(rankings, top_k + _HEADINGS)
        await self._found_documents.describe({hit.doc_id: hit.filename for hit in hits})
        titles = {doc_id: record.title for doc_id, record in self._found_documents.records.items()}
        headings = {hit.block_id for hit in hits if hit.is_heading(titles.get(hit.doc_id, ""))}
        self._headings |= headings
        return [hit for hit in hits if hit.block_id not in headings][:top_k]

    async def _evidence(self, rankings: Sequence[Ranking], top_k: int) -> Evidence:
        return self._described(await self._without_headings(rankings, top_k), rankings)

    def _described(
        self, hits: Sequence[Hit], rankings: Sequence[Ranking], *, narrowed: bool = False
    ) -> Evidence:
        doc_ids = {hit.doc_id: None for hit in hits}
        figures = _page_figures(hits, rankings)
        documents, shown_ids = (
            self._found_documents,
            {hit.block_id for hit in (*hits, *figures)} | self._headings,
        )
        return Evidence(
            hits=tuple(hits),
            whole=tuple(doc_id for doc_id in doc_ids if documents.is_whole(doc_id, shown_ids)),
            figures=figures,
            records=tuple(record for doc_id, record in documents.records.items() if doc_id in doc_ids),
            unique_names=tuple(sorted(documents.unique_names)),
            narrowed=narrowed,
            warnings=self._warnings,
        )

    @property
    def _warnings(self) -> tuple[str, ...]:
        texts = {"meaning": self._words.words_alone, "late": self._words.searches_late}
        return tuple(texts[what] for what in sorted(self._blocks.missed))


def phrasings(plan: QuestionPlan) -> tuple[str, ...]:
    """Return all phrasings of the question to search for, starting with the question itself."""
    return tuple(dict.fromkeys((plan.standalone_question, *plan.search_queries)))


def _versions(evidence: Evidence) -> tuple[str, ...]:
    """Return the ids of the best block's document and of all documents whose titles differ from its title
    only in numbers.

    Empty if there are no others.
    """
    titles = {
        record.doc_id: " ".join(re.findall(r"[^\W\d_]+", record.title.casefold()))
        for record in evidence.records
    }
    best = max(evidence.hits, key=lambda hit: hit.score, default=None)
    title = titles.get(best.doc_id, "") if best else ""
    same = tuple(doc_id for doc_id, other in titles.items() if title and other == title)
    return same if len(same) > 1 else ()


def _may_mean_others(stored: StoredPlan, hits: Sequence[Hit]) -> bool:
    """Return whether the question may be about other documents than those it names, because their blocks
    match poorly.

    A summary is always about the named documents, however different their wording is. A comparison may name
    the documents of one side only; if it names both sides, it is about these.
    """
    query_type = stored.plan.query_type
    is_one_sided = query_type == "COMPARISON" and len(stored.plan.document_references) == 1
    return not hits or ((query_type == "CONTENT_SEARCH" or is_one_sided) and _top(hits) < WEAK_SCORE)


def _merge(of_named: Evidence, elsewhere: Evidence) -> Evidence:
    """Merge the evidence from the named documents with the evidence found in all documents. The former comes
    first.
    """
    hits = {hit.block_id: hit for hit in (*of_named.hits, *elsewhere.hits)}
    records = {record.doc_id: record for record in (*of_named.records, *elsewhere.records)}
    figures = {hit.block_id: hit for hit in (*of_named.figures, *elsewhere.figures)}
    return of_named.model_copy(
        update={
            "hits": tuple(hits.values()),
            "whole": tuple(dict.fromkeys((*of_named.whole, *elsewhere.whole))),
            "records": tuple(records.values()),
            "figures": tuple(figures.values())[:_MAX_FIGURES],
            "unique_names": elsewhere.unique_names,
            "narrowed": False,
        }
    )


def _top(hits: Sequence[Hit]) -> float:
    return top_score([hit.score for hit in hits])


def _page_figures(hits: Sequence[Hit], rankings: Sequence[Ranking]) -> tuple[Hit, ...]:
    """Return the highest-scoring figures on the pages of the best blocks, up to a maximum number.

    A document without pages counts as one page.
    """
    pages = list(dict.fromkeys((hit.doc_id, hit.page_number) for hit in hits if hit.block_type == "text"))
    block_ids = {hit.block_id for hit in hits}
    near = {
        hit.block_id: hit
        for ranking in rankings
        for hit in ranking.hits
        if hit.block_type == "image" and (hit.doc_id, hit.page_number) in pages[:_FIGURE_PAGES]
    }
    fitting = [
        hit for hit in near.values() if hit.block_id not in block_ids and hit.score >= _NEAR_BEST * _top(hits)
    ]
    return tuple(sorted(fitting, key=lambda hit: -hit.score)[:_MAX_FIGURES])
