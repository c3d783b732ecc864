"""Reading of blocks without a question: by their ids, or all blocks of a document in reading order."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from shared.platform.odata import all_of, quote, search_in
from shared.platform.search import SearchRequest
from shared.platform.tokens import tokens_of
from shared.retrieval.block_requests import FIELDS, PASSAGES, as_hit
from shared.retrieval.models import Hit
from shared.retrieval.secured_index import SecuredIndex

_PAGE_ROWS = 500  # maximum number of rows per query; a block has about 1 kB
_OUTLINE_ROWS = (
    # Number of rows without text; an answer shows up to ten documents, and a short one has under 30 blocks.
    300
)
# Limit per document, far more than a summary reads; paging in the service ends at 100,000.
_MAX_BLOCKS = 20_000
_READING_ORDER = ("ordinal", "block_id")


@dataclass(frozen=True)
class BlockLookup:
    """Lookup of blocks by id for one user."""

    index: SecuredIndex

    async def get_many(self, block_ids: Sequence[str]) -> list[Hit]:
        """Return the blocks with these ids in the given order, without duplicates. Missing and unreadable
        blocks are omitted; scores are 0.
        """
        ids = list(dict.fromkeys(block_ids))
        if not ids:
            return []
        request = SearchRequest(filter=search_in("block_id", ids), select=FIELDS, top=len(ids))
        page = await self.index.search(request)
        rows = {row["block_id"]: row for row in page.rows}
        return [as_hit(rows[block_id], 0.0) for block_id in ids if block_id in rows]


@dataclass(frozen=True)
class DocumentBlocks:
    """Reader of the blocks of a document for one user."""

    index: SecuredIndex

    async def pages(self, doc_id: str, first: int, last: int) -> list[Hit]:
        """Return the blocks of pages `first` to `last` (counted from 1, inclusive) in reading order.

        Blocks without a page number are always included.
        """
        on_pages = f"page_number ge {first} and page_number le {last}"
        request = SearchRequest(
            filter=all_of(f"doc_id eq {quote(doc_id)}", PASSAGES, f"({on_pages}) or page_number eq null"),
            select=FIELDS,
            order_by=_READING_ORDER,
            top=_PAGE_ROWS,
        )
        return [as_hit(row, 1.0) for row in (await self.index.search(request)).rows]

    async def whole(self, doc_id: str) -> list[Hit]:
        """Return all blocks of a document except table cards, in reading order. Return none if there are 500
        or more.
        """
        request = SearchRequest(
            filter=all_of(f"doc_id eq {quote(doc_id)}", PASSAGES),
            select=FIELDS,
            order_by=_READING_ORDER,
            top=_PAGE_ROWS,
        )
        rows = (await self.index.search(request)).rows
        return [as_hit(row, 0.0) for row in rows] if len(rows) < _PAGE_ROWS else []

    async def ids_of_short(self, doc_ids: Collection[str]) -> dict[str, set[str]]:
        """Return the block ids, without table cards, of those documents that are short enough to be listed
        completely.

        Document rows are not checked, so never show these blocks to a user.
        """
        request = SearchRequest(
            filter=search_in("doc_id", doc_ids),
            select=("block_id", "block_type", "ordinal"),
            order_by=_READING_ORDER,
            top=_OUTLINE_ROWS,
        )
        rows = (await self.index.candidates(request)).rows
        ids: dict[str, set[str]] = {doc_id: set() for doc_id in doc_ids}
        counts = Counter(str(row["doc_id"]) for row in rows)
        for row in rows:
            if row["block_type"] != "card":
                ids[str(row["doc_id"])].add(str(row["block_id"]))
        if len(rows) < _OUTLINE_ROWS:
            return ids
        # Rows are sorted by ordinal, and the ordinals of a document have no gaps. A document with fewer rows
        # than the last ordinal was therefore read completely.
        last = int(rows[-1].get("ordinal") or 0)
        return {doc_id: blocks for doc_id, blocks in ids.items() if counts[doc_id] < last}

    async def sizes(self, doc_id: str) -> list[tuple[str, int]]:
        """Return the id and token count of each readable text block in reading order, for at most 20,000
        blocks.
        """
        sizes: list[tuple[str, int]] = []
        for skip in range(0, _MAX_BLOCKS, _PAGE_ROWS):
            request = SearchRequest(
                filter=all_of(f"doc_id eq {quote(doc_id)}", "block_type eq 'text'"),
                select=("block_id", "content"),
                order_by=_READING_ORDER,
                top=_PAGE_ROWS,
                skip=skip,
            )
            page = await self.index.candidates(request)
            rows = await self.index.readable(page.rows)
            sizes += [(str(row["block_id"]), tokens_of(str(row.get("content") or ""))) for row in rows]
            if len(page.rows) < _PAGE_ROWS:
                break
        return sizes
