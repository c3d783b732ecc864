"""Proof of an answer's statements by the citations that follow them. Pure but for the numbers it assigns."""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.answering.statements import Statement
from shared.evidence.citations import CitationBook
from shared.evidence.models import Citation, TableResult


@dataclass(frozen=True)
class Proof:
    """A numbered citation of a statement.

    Attributes:
        is_new: no earlier citation of the answer has its number.
        quote: the quotation to repair, or "" if the citation is proved.
    """

    citation: Citation
    is_new: bool
    quote: str = ""


def prove(
    statement: Statement, book: CitationBook, results: Sequence[TableResult], language: str
) -> list[Proof | None]:
    """Return one proof per citation of the statement, or None where the cited source is unknown.

    Args:
        results: the results of table queries that may be cited.
        language: ISO 639-1 code of the answer.
    """
    proofs: list[Proof | None] = []
    for cite in statement.cites:
        if cite.result:
            result = next((match for match in results if match.result_id == cite.result), None)
            proofs.append(Proof(*book.compute(result, language)) if result else None)
        elif proved := book.prove(cite.doc_id, cite.quote):
            proofs.append(Proof(*proved))
        else:
            unproved = book.hold(cite.doc_id, cite.quote)
            proofs.append(Proof(*unproved, quote=cite.quote) if unproved else None)
    return proofs
