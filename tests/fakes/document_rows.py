"""Document rows that a test provides, with a count of reads."""

from collections.abc import Mapping

from shared.retrieval.document_rows import DocumentRow, DocumentRows

OPEN = DocumentRow((("*",),))


class FixedRows(DocumentRows):
    """The rows of documents, by id. `others` is the row of every other document; None means that it has
    none.
    """

    def __init__(
        self, rows: Mapping[str, DocumentRow | None] | None = None, *, others: DocumentRow | None = OPEN
    ) -> None:
        self.rows = dict(rows or {})
        self.reads: list[str] = []
        self._others = others

    async def row(self, doc_id: str) -> DocumentRow | None:
        self.reads.append(doc_id)
        return self.rows.get(doc_id, self._others)
