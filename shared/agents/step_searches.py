"""What a step searches with: each index bound to the run's user, each call within the settings' limits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shared.errors import CallTimeoutError
from shared.models.prompts import CallLimits
from shared.models.runs import RunRequest
from shared.retrieval.blocks import BlockSearch
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.page_figures import PageFigures
from shared.retrieval.secured_index import SecuredIndex
from shared.services import Services


class StepSearches:
    """Makes the searches of one step."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def blocks(self, request: RunRequest) -> BlockSearch:
        """Blocks that the asker may read."""
        secured = SecuredIndex(self._services.content_index, request.user)
        documents = SecuredIndex(self._services.documents_index, request.user)
        return BlockSearch(
            secured,
            self._services.embedder,
            self._limits(),
            documents,
            semantic_ranker=self._services.settings.semantic_ranker,
        )

    def page_figures(self, request: RunRequest) -> PageFigures:
        """Pictures that the asker may see."""
        secured = SecuredIndex(self._services.content_index, request.user)
        return PageFigures(secured, self._services.embedder, self._limits())

    def documents(self, request: RunRequest) -> DocumentSearch:
        """Documents that the asker may read."""
        return DocumentSearch(SecuredIndex(self._services.documents_index, request.user))

    @asynccontextmanager
    async def deadline(self) -> AsyncIterator[None]:
        """One limit for all searches of a step together; each has its own below it.

        Raises:
            CallTimeoutError: it passed.
        """
        limit_s = self._services.settings.gather_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                yield
        except TimeoutError as late:
            raise CallTimeoutError(
                f"The search did not finish within {limit_s:g} s.", "Ask again, or raise GATHER_TIMEOUT_S."
            ) from late

    def _limits(self) -> CallLimits:
        return CallLimits(timeout_s=self._services.settings.search_timeout_s)
