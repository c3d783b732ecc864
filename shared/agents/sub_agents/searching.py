"""What a sub-agent searches with: the indexes as the asker may see them, within limits of time."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from shared.agents.sub_agents.desk import Desk
from shared.core.subagent_budget import tool_limit_s
from shared.errors import CallTimeoutError
from shared.models.prompts import CallLimits
from shared.ports import Embedder
from shared.retrieval.block_lookup import BlockLookup
from shared.retrieval.blocks import BlockSearch
from shared.retrieval.document_blocks import DocumentBlocks
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.secured_index import SecuredIndex


class Searches:
    """Every index bound to the user of the run, who is no argument of anything that a model can fill in."""

    def __init__(self, desk: Desk) -> None:
        services, user = desk.services, desk.request.user
        self.limit_s = tool_limit_s(desk.remaining_s, services.settings.gather_timeout_s)
        # Tried again as a turn is, not below: the deadline is near.
        self.limits = CallLimits(
            timeout_s=min(self.limit_s, services.settings.search_timeout_s), max_retries=0
        )
        content = SecuredIndex(services.content_index, user)
        documents = SecuredIndex(services.documents_index, user)
        self.blocks = BlockSearch(
            content,
            _OncePerText(services.embedder),
            self.limits,
            documents,
            semantic_ranker=services.settings.semantic_ranker,
        )
        self.lookup = BlockLookup(content)
        self.contents = DocumentBlocks(content)
        self.documents = DocumentSearch(documents)

    @asynccontextmanager
    async def deadline(self) -> AsyncIterator[None]:
        """One limit for all searches of one call.

        Raises:
            CallTimeoutError: it passed.
        """
        try:
            async with asyncio.timeout(self.limit_s):
                yield
        except TimeoutError:
            raise CallTimeoutError("A search of a sub-agent did not finish in time.") from None


class _OncePerText(Embedder):
    """Embeds each text once, however many searches ask for it at the same time: one for each document."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[tuple[str, ...], list[tuple[float, ...]]] = {}
        self._asking = asyncio.Lock()

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    async def embed(self, texts: Sequence[str], limits: CallLimits) -> list[tuple[float, ...]]:
        async with self._asking:
            if tuple(texts) not in self._known:
                self._known[tuple(texts)] = await self._embedder.embed(texts, limits)
        return self._known[tuple(texts)]
