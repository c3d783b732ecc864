"""Searches that return documents rather than blocks: lists, names, single records and facets for one user.

Single documents are checked against their rows (`document_rows`). Facet values come from the index alone and
may lag by seconds.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from shared.platform.concurrency import run_together
from shared.platform.errors import DocumentNotFoundError, InvalidQueryError
from shared.platform.odata import all_of, quote, search_in
from shared.platform.search import FacetValue, Filters, IndexRow, SearchRequest
from shared.retrieval.document_names import reference_query
from shared.retrieval.filters import DOCUMENT_FIELDS, render_filters
from shared.retrieval.keyword_query import all_words_query, any_word_query, name_query
from shared.retrieval.models import DocumentRecord
from shared.retrieval.secured_index import SecuredIndex
from shared.retrieval.terms import document_name_terms

_SORTABLE = frozenset({"upload_date", "document_date", "filename", "title", "page_count", "document_type"})
_NAME_FIELDS = ("filename", "title", "tags", "document_type", "department", "author", "summary_brief")
# These suffixes are tried if a user omits the suffix. Analyzers keep "12.pdf" as one term, so "12" alone
# doesn't match.
_SUFFIXES = ("pdf", "docx", "xlsx", "pptx", "md", "txt", "csv", "html", "eml", "vtt", "png", "jpg")
SortField = Literal["title", "filename", "document_type", "upload_date", "document_date", "page_count"]
Match = Literal["all", "any"]
"""Whether a document must match all words of a search, or one of them."""
_REFERENCE_FIELDS = ("filename", "title", "document_type")
# Maximum number of documents that match a name, more than a clarification can offer. A name of more documents
# doesn't narrow a search.
_NAMED_CANDIDATES = 50
_MAX_DOCUMENTS = 100
_MAX_NAMESAKES = 50  # maximum number of full records that are read to compare their names
# Number of documents checked per name; two readable ones suffice, and three outdated rows are rare.
_CHECKED_NAMESAKES = 5
_MAX_FACET_VALUES = 100
_PAGE_OF_IDS = 1000  # maximum page size of the service
# Maximum number of ids in a filter; with 24 characters each they take 125 kB, and more was not measured.
_MAX_IDS = 5_000


@dataclass(frozen=True)
class NamedDocument:
    """A document whose name occurs in a question.

    Attributes:
        score: the service's score of the names that question and document share.
        names: terms of its file name and title.
    """

    score: float
    names: tuple[str, ...]


@dataclass(frozen=True)
class DocumentSearch:
    """Search over the documents that one user may read."""

    index: SecuredIndex

    async def list_documents(
        self, filters: Filters, sort_by: str = "upload_date", limit: int = 20
    ) -> list[DocumentRecord]:
        """Return the first documents in order: dates newest first, other fields ascending. `limit` is clamped
        to 1-100.

        Raises:
            InvalidQueryError: a filter field is unknown, or `sort_by` isn't sortable.
        """
        if sort_by not in _SORTABLE:
            raise InvalidQueryError(
                f"Documents cannot be sorted by {sort_by!r}.", f"Allowed: {', '.join(sorted(_SORTABLE))}."
            )
        order = f"{sort_by} desc" if sort_by in ("upload_date", "document_date") else sort_by
        return await self._search(
            SearchRequest(filter=_ready(filters), order_by=(order,), top=_clamped(limit))
        )

    async def page(self, filters: Filters, behind: str | None, limit: int) -> list[DocumentRecord]:
        """Return the next page of documents, newest first. `behind` is a condition that excludes earlier
        pages (`older_than`).
        """
        return await self._search(
            SearchRequest(
                filter=all_of(_ready(filters), behind),
                order_by=("upload_date desc", "doc_id"),
                top=limit,
            )
        )

    async def newest(self, filters: Filters, limit: int) -> tuple[list[DocumentRecord], int]:
        """Return the newest documents and the number of all matching documents. `limit` is clamped to
        1-100.
        """
        request = SearchRequest(
            filter=_ready(filters),
            order_by=("upload_date desc",),
            top=_clamped(limit),
            count=True,
        )
        page = await self.index.candidates(request)
        records = [DocumentRecord.of_row(row) for row in await self.index.readable(page.rows)]
        # The index also counts documents that the user may no longer read. Those on this page are subtracted.
        return records, (page.count or len(page.rows)) - len(page.rows) + len(records)

    async def get(self, doc_id: str) -> DocumentRecord:
        """Return the document with this id.

        Raises:
            DocumentNotFoundError: the document is missing or forbidden, without distinction.
        """
        page = await self._search(SearchRequest(filter=f"doc_id eq {quote(doc_id)}", top=1))
        if not page:
            raise DocumentNotFoundError(
                f"There is no document {doc_id[:64]!r}.", "List the documents to see which exist."
            )
        return page[0]

    async def get_many(self, doc_ids: Sequence[str]) -> dict[str, DocumentRecord]:
        """Return the existing, readable documents among these ids, keyed by id."""
        if not doc_ids:
            return {}
        request = SearchRequest(filter=search_in("doc_id", doc_ids), top=len(set(doc_ids)))
        return {record.doc_id: record for record in await self._search(request)}

    async def get_with_namesakes(
        self, doc_ids: Sequence[str], filenames: Collection[str]
    ) -> tuple[dict[str, DocumentRecord], frozenset[str]]:
        """Return documents by id, as `get_many` does, and the names in `filenames` that are unique among the
        readable documents.

        This takes one search. If very many documents share names, no name counts as unique.
        """
        if not filenames:
            return await self.get_many(doc_ids), frozenset()
        either = f"{search_in('doc_id', doc_ids)} or {search_in('filename', filenames)}"
        most = len(doc_ids) + _MAX_NAMESAKES
        records = await self._search(SearchRequest(filter=either, top=most))
        if len(records) >= most:
            return await self.get_many(doc_ids), frozenset()
        counts = Counter(record.filename for record in records)
        unique = frozenset(name for name in filenames if counts[name] == 1)
        return {record.doc_id: record for record in records if record.doc_id in doc_ids}, unique

    async def shared_names(self, filenames: Collection[str]) -> frozenset[str]:
        """Return the file names that several readable documents have. If there are too many matches to check,
        return all.
        """
        if not filenames:
            return frozenset()
        condition = all_of("status eq 'ready'", search_in("filename", filenames))
        request = SearchRequest(filter=condition, select=("doc_id", "filename"), top=_PAGE_OF_IDS)
        rows = (await self.index.candidates(request)).rows
        if len(rows) >= _PAGE_OF_IDS:  # the page is full, so matches may be missing
            return frozenset(filenames)
        namesakes: dict[str, list[IndexRow]] = {}
        for row in rows:
            namesakes.setdefault(str(row["filename"]), []).append(row)
        checked = [row for of_name in namesakes.values() for row in of_name[:_CHECKED_NAMESAKES]]
        counts = Counter(str(row["filename"]) for row in await self.index.readable(checked))
        return frozenset(name for name, count in counts.items() if count > 1)

    async def ids_of(self, filters: Filters) -> list[str]:
        """Return the ids of all documents that pass the filters. Permissions are not checked in the table, so
        use the ids only to narrow a search.

        Raises:
            InvalidQueryError: a filter field is unknown, or more than 5,000 documents pass.
        """
        ids: list[str] = []
        while len(ids) <= _MAX_IDS:
            request = SearchRequest(
                filter=_ready(filters),
                select=("doc_id",),
                order_by=("doc_id",),
                top=_PAGE_OF_IDS,
                skip=len(ids),
            )
            rows = (await self.index.candidates(request)).rows
            ids += [str(row["doc_id"]) for row in rows]
            if len(rows) < _PAGE_OF_IDS:
                return ids
        raise InvalidQueryError(
            f"More than {_MAX_IDS:,} documents match these filters.", "Narrow or remove the filters."
        )

    async def sorted_page(
        self, filters: Filters, sort_by: SortField, skip: int, limit: int
    ) -> tuple[list[DocumentRecord], int | None]:
        """Return one page, dates newest first and other fields ascending, and the `skip` of the next page
        (None after the last).
        """
        order = f"{sort_by} desc" if sort_by in ("upload_date", "document_date") else sort_by
        page = await self.index.search(
            SearchRequest(filter=_ready(filters), order_by=(order, "doc_id"), top=limit + 1, skip=skip)
        )
        records = [DocumentRecord.of_row(row) for row in page.rows[:limit]]
        # Unreadable documents also occupy positions, so the position of the last returned document determines
        # the next page.
        return records, page.positions[limit - 1] + 1 if len(page.rows) > limit else None

    async def find(
        self, text: str, filters: Filters, limit: int = 20, match: Match = "any"
    ) -> list[DocumentRecord]:
        """Return documents that match the text: exact file names first, then names with all words, then other
        matches.

        Other matches may be in types, tags, people or summaries. `limit` is clamped to 1-100.
        """
        condition, top = _ready(filters), _clamped(limit)
        names = [text.strip(), *(f"{text.strip()}.{suffix}" for suffix in _SUFFIXES)]
        exact = SearchRequest(filter=all_of(condition, search_in("filename", names)), top=top)
        by_name = _by_words(text, "all", condition, top)
        requests = [exact, _by_words(text, match, condition, top)]
        if by_name.text:
            requests.insert(1, by_name.model_copy(update={"search_fields": _REFERENCE_FIELDS[:2]}))
        pages = await run_together(*(self._search(request) for request in requests))
        return list({record.doc_id: record for page in pages for record in page}.values())[:top]

    async def find_named(self, reference: str, filters: Filters) -> list[DocumentRecord]:
        """Return documents that a reference may mean: an exact file name first, then matches of its words in
        names and types.
        """
        condition = _ready(filters)
        exact = SearchRequest(
            filter=all_of(condition, f"filename eq {quote(reference.strip())}"), top=_NAMED_CANDIDATES
        )
        by_words = SearchRequest(
            text=reference_query(reference),
            query_type="full",
            search_fields=_REFERENCE_FIELDS,
            filter=condition,
            top=_NAMED_CANDIDATES,
        )
        requests = [exact, by_words] if by_words.text else [exact]
        pages = await run_together(*(self._search(request) for request in requests))
        return list({record.doc_id: record for page in pages for record in page}.values())

    async def named_in(self, question: str, filters: Filters) -> dict[str, NamedDocument]:
        """Return up to 50 documents whose names occur in the question, keyed by id.

        Filters on fields that documents lack, such as pages, are ignored. For ranking only, because rows are
        not checked.
        """
        query = name_query(question)
        if query is None:
            return {}
        shared = {field: value for field, value in filters.items() if field in DOCUMENT_FIELDS}
        request = SearchRequest(
            text=query,
            query_type="full",
            search_fields=("words",),
            filter=_ready(shared),
            select=("doc_id", "filename", "title"),
            top=_NAMED_CANDIDATES,
        )
        page = await self.index.candidates(request)
        return {
            str(row["doc_id"]): NamedDocument(
                score=float(row["@search.score"]),
                names=document_name_terms(str(row.get("filename") or ""), str(row.get("title") or ""), ()),
            )
            for row in page.rows
        }

    async def facets(
        self, fields: Sequence[str], filters: Filters, limit: int, text: str = "", match: Match = "any"
    ) -> tuple[dict[str, tuple[FacetValue, ...]], int]:
        """Return the most frequent values of each field with their counts, and the number of matching
        documents.

        Args:
            fields: facetable fields of the index of documents.
            limit: values per field, clamped to 1-100.
            text: count only documents that match its words; empty = all.
            match: whether all of its words must match, or any.

        Raises:
            InvalidQueryError: a filter field is unknown.
        """
        most = min(max(limit, 1), _MAX_FACET_VALUES)
        condition = _ready(filters)
        request = _by_words(text, match, condition, 1) if text else SearchRequest(filter=condition, top=1)
        request = request.model_copy(
            update={
                "select": ("doc_id",),
                "facets": tuple(f"{field},count:{most}" for field in fields),
                "count": True,
            }
        )
        page = await self.index.candidates(request)
        return {field: page.facets.get(field, ()) for field in fields}, page.count or 0

    async def _search(self, request: SearchRequest) -> list[DocumentRecord]:
        page = await self.index.search(request)
        return [DocumentRecord.of_row(row) for row in page.rows]


def _by_words(text: str, match: Match, condition: str | None, top: int) -> SearchRequest:
    stem, _, suffix = text.strip().rpartition(".")
    query = all_words_query(stem if stem and suffix.lower() in _SUFFIXES else text)
    fields = (*_NAME_FIELDS, "names")
    if match == "any" or not query:
        return SearchRequest(text=any_word_query(text), search_fields=fields, filter=condition, top=top)
    return SearchRequest(text=query, query_type="full", search_fields=fields, filter=condition, top=top)


def _ready(filters: Filters) -> str | None:
    return all_of("status eq 'ready'", render_filters(filters, DOCUMENT_FIELDS))


def _clamped(limit: int) -> int:
    return min(max(limit, 1), _MAX_DOCUMENTS)
