"""The full-text index, kept in memory and derived from the store.

Searches within a selection of slots are exact: the selection becomes part of the query, or hits are read in
score order until enough of them belong to it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import tantivy
from tantivy import DocAddress, Document, Index, IndexWriter, Occur, Query, SchemaBuilder, Searcher

from local.search_server import analyzers
from local.search_server.schema import Field, JsonObject, Schema, values_at

SLOT: Final = "slot"
# If at most this many documents are selected, it is cheaper to make the selection part of the query.
SMALL_SELECTION: Final = 1000
_WRITER_BYTES: Final = 100_000_000
_WRITER_THREADS: Final = 2
_GROWTH: Final = 4
_MARGIN: Final = 10  # number of extra hits read at first; few suffice, because equal scores are rare

Slots = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def text_name(field: Field) -> str:
    return f"t{field.number}"


class TextIndex:
    """A text index for one writer at a time, which the caller must ensure. Its searchers are snapshots that
    threads can share.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        builder = SchemaBuilder()
        builder.add_unsigned_field(SLOT, fast=True, indexed=True)
        names = {analyzers.STANDARD}
        for field in schema.text_fields:
            names.add(field.analyzer)
            builder.add_text_field(text_name(field), tokenizer_name=field.analyzer)
        self.layout = builder.build()
        self._index = Index(self.layout)
        for name in names:
            self._index.register_tokenizer(name, analyzers.analyzer(name))
        self._index.config_reader("manual")
        self._writer: IndexWriter | None = None

    def add(self, documents: Iterable[tuple[int, JsonObject]]) -> None:
        writer = self._open_writer()
        for slot, body in documents:
            document = Document()
            document.add_unsigned(SLOT, slot)
            for field in self._schema.text_fields:
                for text in values_at(body, field.path):
                    document.add_text(text_name(field), str(text))
            writer.add_document(document)

    def delete(self, slots: Sequence[int]) -> None:
        # Documents are deleted by query, because delete_documents_by_term treats numbers as signed and
        # silently deletes nothing.
        if slots:
            doomed = Query.term_set_query(self.layout, SLOT, list(slots))
            self._open_writer().delete_documents_by_query(doomed)

    def commit(self) -> Searcher:
        """Commit all changes and return a searcher that sees them."""
        if self._writer is not None:
            self._writer.commit()
        self._index.reload()
        return self._index.searcher()

    def close(self) -> None:
        self._writer = None

    def _open_writer(self) -> IndexWriter:
        if self._writer is None:
            self._writer = self._index.writer(_WRITER_BYTES, _WRITER_THREADS)
        return self._writer


def selected_only(layout: tantivy.Schema, query: Query, slots: Sequence[int]) -> Query:
    """Return the query restricted to the given slots, with unchanged scores."""
    chosen = Query.const_score_query(Query.term_set_query(layout, SLOT, list(slots)), 0.0)
    return Query.boolean_query([(Occur.Must, query), (Occur.Must, chosen)])


def best_slots(searcher: Searcher, query: Query, mask: Mask | None, limit: int) -> list[tuple[int, float]]:
    """Return the best `limit` hits as (slot, score), best first, with ties in slot order. Only slots in the
    mask count; None allows all.

    Hits that tie at the limit are all read before the result is cut; otherwise pages could repeat or omit
    hits.
    """
    selected = searcher.num_docs if mask is None else int(np.count_nonzero(mask))
    # This depth assumes that the selected documents are spread evenly. One query that is too deep is cheaper
    # than two.
    expected = limit * searcher.num_docs // max(selected, 1)
    depth = min(expected + expected // 2 + _MARGIN, searcher.num_docs)
    while depth > 0:
        hits = searcher.search(query, depth, count=False).hits
        slots = _slots_of_hits(searcher, hits)
        positions = np.arange(len(slots)) if mask is None else np.flatnonzero(mask[slots])
        is_all = len(hits) < depth or depth == searcher.num_docs
        if is_all or (len(positions) >= limit and hits[positions[limit - 1]][0] > hits[-1][0]):
            scored = [(int(slots[at]), float(hits[at][0])) for at in positions]
            return sorted(scored, key=lambda one: (-one[1], one[0]))[:limit]
        depth = min(_GROWTH * depth, searcher.num_docs)
    return []


def matching_slots(searcher: Searcher, query: Query) -> Slots:
    """Return the slots of all documents that match the query, in ascending order."""
    if searcher.num_docs == 0:
        return np.empty(0, dtype=np.int64)
    # When ordering by the slot column, tantivy returns the slots themselves and skips scoring.
    hits = searcher.search(query, searcher.num_docs, count=False, order_by_field=SLOT).hits
    slots = np.fromiter((hit[0] for hit in hits), dtype=np.int64, count=len(hits))
    return slots[::-1]


def _slots_of_hits(searcher: Searcher, hits: Sequence[tuple[float, DocAddress]]) -> Slots:
    if not hits:
        return np.empty(0, dtype=np.int64)
    return np.array(searcher.fast_field_values(SLOT, [address for _, address in hits]), dtype=np.int64)
