"""The searches of one step of a run, restricted by the user's permissions and the time that is left.

A search that hangs is started a second time. If it exceeds a fair time twice, the search service has failed.
If the run has less time left than that, the result counts as unfinished rather than empty, because nothing is
known about the documents. Time during which this process's event loop was blocked doesn't count as fair: on
an overloaded machine, responses arrive but aren't read.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager

from shared.access.security_filter import readable_databases
from shared.evidence.messages import Messages
from shared.platform.errors import CallTimeoutError
from shared.platform.language_models.models import CallLimits
from shared.platform.search import Filters
from shared.platform.telemetry import get_logger
from shared.retrieval.block_reading import DocumentBlocks
from shared.retrieval.blocks import BlockSearch, DegradationPolicy
from shared.retrieval.document_rows import RowsReadOnce, readable_rows
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.fusion import relevant_cosine
from shared.retrieval.models import ReadableDocuments
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.evidence import Evidence
from shared.runs.models import RunRequest
from shared.runs.step_time import StepTime
from shared.tools.services import ToolServices


def caller_limits(request: RunRequest) -> Filters:
    """Return the caller's restrictions, by project and by document, as filters for every search of the
    run.
    """
    limits: Filters = {}
    if request.project_id:
        limits["project_id"] = request.project_id
    if request.doc_ids:
        limits["doc_id"] = request.doc_ids
    return limits


def configured_block_search(
    blocks: SecuredIndex,
    documents: SecuredIndex,
    services: ToolServices,
    degradation: DegradationPolicy | None,
) -> BlockSearch:
    """Return a search over blocks with the ranker and the embedding model of the settings.

    Args:
        blocks, documents: indexes restricted to the permissions of the same user.
        degradation: None = any failure fails the search.
    """
    settings, models = services.settings, services.settings.models
    return BlockSearch(
        blocks,
        services.embedder,
        CallLimits(timeout_s=settings.search.timeout_s),
        documents,
        semantic_ranker=settings.search.semantic_ranker,
        degradation=degradation,
        relevant_cosine=models.relevant_cosine or relevant_cosine(models.embedding),
    )


_PATIENCE = 0.7  # share of the search time after which optional searches are abandoned
_TRIES = 2
_TICK_S = 0.5  # interval at which the event loop's lateness is measured
_FAIR_SHARE = (
    0.9  # minimum share of a limit without event loop delays; on an idle machine, delays are far smaller
)


@asynccontextmanager
async def _lateness() -> AsyncIterator[list[float]]:
    """Measure in the background how late the event loop is. Yield a list that receives the seconds of delay,
    one entry per tick.
    """
    late_s: list[float] = []

    async def watch() -> None:
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            await asyncio.sleep(_TICK_S)
            late_s.append(max(0.0, clock() - began - _TICK_S))

    watching = asyncio.create_task(watch())
    try:
        yield late_s
    finally:
        watching.cancel()


class StepSearches:
    """The searches of one attempt at a step. Create one per attempt, because it caches document rows."""

    def __init__(self, services: ToolServices) -> None:
        self._services = services
        self._rows = RowsReadOnce(services.documents)

    def blocks(self, request: RunRequest, time: StepTime) -> BlockSearch:
        """Return a search over blocks that the user may read. If embedding fails or is late, it searches by
        keyword only.
        """
        settings = self._services.settings
        gather_s = time.seconds("gather", settings.answering.retrieval_timeout_s)
        secured = SecuredIndex(self._services.content_index, request.user, self._rows)
        documents = SecuredIndex(self._services.documents_index, request.user, self._rows)
        degradation = DegradationPolicy(
            embed_limits=time.limits("embed", settings.search.timeout_s), patience_s=gather_s * _PATIENCE
        )
        return configured_block_search(secured, documents, self._services, degradation)

    def whole_documents(self, request: RunRequest) -> DocumentBlocks:
        """Return a reader for the complete contents of documents that the user may read."""
        return DocumentBlocks(SecuredIndex(self._services.content_index, request.user, self._rows))

    def documents(self, request: RunRequest) -> DocumentSearch:
        """Return a search over the documents that the user may read."""
        return DocumentSearch(SecuredIndex(self._services.documents_index, request.user, self._rows))

    async def readable(self, doc_ids: Collection[str], request: RunRequest) -> ReadableDocuments:
        """Return which of the given documents and databases the user may currently read.

        Raises:
            DependencyError: table storage failed.
        """
        sources = readable_databases(request.user, self._services.settings.databases.sources)
        databases = frozenset(sources.keys() & set(doc_ids))
        rows = await readable_rows(sorted(set(doc_ids) - databases), request.user, self._rows)
        return ReadableDocuments({doc_id: row.version for doc_id, row in rows.items()}, databases)

    async def in_time(
        self,
        search: Callable[[], Awaitable[Evidence]],
        time: StepTime,
        request: RunRequest,
        words: Messages,
    ) -> Evidence:
        """Run `search`, and retry it once after a timeout. If the run is too short of time for a fair second
        attempt, return evidence marked `unfinished`.

        Raises:
            CallTimeoutError: the search exceeded a fair time twice.
        """
        setting_s = self._services.settings.answering.retrieval_timeout_s
        fair_tries = 0
        for _ in range(_TRIES):
            limit_s = time.seconds("gather", setting_s)
            fair_s = min(setting_s, time.left.fair_search_s)
            async with _lateness() as late_s:
                try:
                    async with asyncio.timeout(limit_s):
                        return await search()
                except (TimeoutError, CallTimeoutError):
                    get_logger().warning("search.retried", run_id=request.run_id, limit_s=round(limit_s, 2))
            fair_tries += limit_s - sum(late_s) >= fair_s * _FAIR_SHARE
            if time.left.is_short:
                break
        if fair_tries < _TRIES:
            return Evidence(unfinished=True, warnings=(words.search_unfinished,))
        raise CallTimeoutError(
            f"The search did not finish within {limit_s:.3g} s in two attempts.",
            "Ask again. If the error persists, check the load on the search service.",
        )
