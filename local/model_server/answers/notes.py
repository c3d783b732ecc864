"""What sub-agents' notes prove, as passages of the documents at hand. A note itself is never quoted.

A proof that stands in no block of its document is passed over: the documents decide.
"""

from collections.abc import Sequence

from local.model_server.answers.rows import Row, differ_in_numbers
from local.model_server.prompt_reader import Document, Finding
from local.model_server.text.passages import Passage, passages_of

_COMPARED = frozenset({"similarity", "difference", "conflict"})


def compared_rows(findings: Sequence[Finding], documents: Sequence[Document]) -> list[Row]:
    """A row for each note that sets documents against each other, those that differ ahead."""
    rows = []
    for finding in sorted(findings, key=lambda one: one.kind == "similarity"):
        cells: dict[str, Passage] = {}
        for passage in _proofs(finding, documents) if finding.kind in _COMPARED else ():
            cells.setdefault(passage.document.doc_id, passage)
        if len(cells) > 1:
            rows.append(Row(cells, differ_in_numbers(list(cells.values())), finding.about))
    return rows


def noted_passages(findings: Sequence[Finding], documents: Sequence[Document]) -> list[Passage]:
    """The passages that prove any note, in the notes' order, each once."""
    passages = [passage for finding in findings for passage in _proofs(finding, documents)]
    return list({(one.document.doc_id, one.quote): one for one in passages}.values())


def _proofs(finding: Finding, documents: Sequence[Document]) -> list[Passage]:
    known = {document.doc_id: document for document in documents}
    found = (_passage(known[doc_id], quote) for doc_id, quote in finding.proofs if doc_id in known)
    return [passage for passage in found if passage]


def _passage(document: Document, quote: str) -> Passage | None:
    """The sentence or row that the quotation is of; the quotation itself where it is of none alone."""
    folded = " ".join(quote.split())
    if not folded:
        return None
    for passage in passages_of([document]):
        if folded in passage.quote:
            return passage
    for index, block in enumerate(document.blocks):
        if folded in " ".join(block.text.split()):
            return Passage(document, block, folded, folded, index, 0)
    return None
