"""What a step searches with: each index bound to the run's user, each call within the settings' limits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shared.agents.step_time import StepTime
from shared.core.run_deadline import Part
from shared.errors import CallTimeoutError
from shared.models.prompts import CallLimits
from shared.models.runs import RunRequest
from shared.retrieval.blocks import BlockSearch, Lenience
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.page_figures import PageFigures
from shared.retrieval.secured_index import SecuredIndex
from shared.services import Services

_PATIENCE = 0.7  # share of a step's time after which searches that only add to what is found are given up


class StepSearches:
    """Makes the searches of one step."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def blocks(self, request: RunRequest, time: StepTime) -> BlockSearch:
        """Blocks that the asker may read; found by words alone when the embedder fails or is late."""
        settings = self._services.settings
        gather_s = time.seconds("gather", settings.gather_timeout_s)
        secured = SecuredIndex(self._services.content_index, request.user)
        documents = SecuredIndex(self._services.documents_index, request.user)
        return BlockSearch(
            secured,
            self._services.embedder,
            self._limits(),
            documents,
            semantic_ranker=settings.semantic_ranker,
            lenience=Lenience(
                embed_limits=time.limits("embed", settings.search_timeout_s),
                patience_s=gather_s * _PATIENCE,
            ),
        )

    def page_figures(self, request: RunRequest) -> PageFigures:
        """Pictures that the asker may see."""
        secured = SecuredIndex(self._services.content_index, request.user)
        return PageFigures(secured, self._services.embedder, self._limits())

    def documents(self, request: RunRequest) -> DocumentSearch:
        """Documents that the asker may read."""
        return DocumentSearch(SecuredIndex(self._services.documents_index, request.user))

    @asynccontextmanager
    async def deadline(self, time: StepTime, part: Part) -> AsyncIterator[None]:
        """One limit for all searches of a step together; each has its own below it.

        Raises:
            CallTimeoutError: it passed.
        """
        limit_s = time.seconds(part, self._services.settings.gather_timeout_s)
        try:
            async with asyncio.timeout(limit_s):
                yield
        except TimeoutError as late:
            raise CallTimeoutError(
                f"The search did not finish within {limit_s:.3g} s.", "Ask again, or raise GATHER_TIMEOUT_S."
            ) from late

    def _limits(self) -> CallLimits:
        return CallLimits(timeout_s=self._services.settings.search_timeout_s)
