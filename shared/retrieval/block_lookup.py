"""Blocks by id, for one user. An id that a model made up and one of a foreign document find nothing."""

from collections.abc import Sequence

from shared.core.odata import search_in
from shared.models.search import Hit, SearchRequest
from shared.retrieval.secured_index import SecuredIndex

_FIELDS = tuple(name for name in Hit.model_fields if name != "score")


class BlockLookup:
    """Gets blocks that one user may read."""

    def __init__(self, index: SecuredIndex) -> None:
        self._index = index

    async def get_many(self, block_ids: Sequence[str]) -> list[Hit]:
        """Those of the blocks that exist and are readable, in the order asked for, each once; score 0."""
        wanted = list(dict.fromkeys(block_ids))
        if not wanted:
            return []
        request = SearchRequest(filter=search_in("block_id", wanted), select=_FIELDS, top=len(wanted))
        page = await self._index.search(request)
        found = {row["block_id"]: row for row in page.rows}
        return [
            Hit.model_validate(
                {name: found[block_id][name] for name in _FIELDS if found[block_id].get(name) is not None}
            )
            for block_id in wanted
            if block_id in found
        ]
