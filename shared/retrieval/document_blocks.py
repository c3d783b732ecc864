"""The text of one document, block by block, for one user: whoever may not read it gets none."""

from shared.core.odata import all_of, quote
from shared.core.summary_windows import tokens_of
from shared.models.search import SearchRequest
from shared.retrieval.secured_index import SecuredIndex

_PAGE = 500  # rows of one query; a block has about 1 kB
_MAX_BLOCKS = 20_000  # far more than a summary reads; the service pages to 100,000


class DocumentBlocks:
    """Lists the text blocks of documents."""

    def __init__(self, index: SecuredIndex) -> None:
        self._index = index

    async def sizes(self, doc_id: str) -> list[tuple[str, int]]:
        """(block id, tokens) of each text block, by page and moment; at most 20,000.

        Within a page the order is that of ids: the index does not know a finer one.
        """
        found: list[tuple[str, int]] = []
        while len(found) < _MAX_BLOCKS:
            request = SearchRequest(
                filter=all_of(f"doc_id eq {quote(doc_id)}", "block_type eq 'text'"),
                select=("block_id", "content"),
                order_by=("page_number", "start_seconds", "block_id"),
                top=_PAGE,
                skip=len(found),
            )
            rows = (await self._index.search(request)).rows
            found += [(str(row["block_id"]), tokens_of(str(row.get("content") or ""))) for row in rows]
            if len(rows) < _PAGE:
                break
        return found
