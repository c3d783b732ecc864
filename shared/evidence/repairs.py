"""Defines the model request that repairs the quotations of a turn that were not found in the documents, and
checks its replacements.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from pydantic import Field

from shared.evidence.document_prompt import documents_with_blocks
from shared.evidence.source_numbers import SourceNumbers, unsourced_numbers
from shared.platform.models import Model
from shared.platform.prompts import element
from shared.retrieval.models import DocumentRecord, Hit


@dataclass(frozen=True)
class FailedQuotation:
    """A quotation that occurs in none of the documents shown to the model.

    Attributes:
        number: identifies the quotation in the model's reply.
        claim: the line of the answer that it should prove (`shared.evidence.text.last_claim`).
        doc_id: the cited document.
    """

    number: int
    claim: str
    doc_id: str
    quote: str


class RepairedQuotation(Model):
    """A replacement quotation for a claim."""

    number: int = Field(description="The claim's number, as given.")
    doc_id: str = Field(description="Document of the quotation.")
    quote: str | None = Field(description="Copied letter by letter from one block, or null.")


class RepairedQuotations(Model):
    """Structured output of the repair call."""

    quotations: tuple[RepairedQuotation, ...] = Field(description="One for each claim.")


def repair_input(
    failed: Sequence[FailedQuotation], hits: Sequence[Hit], records: Mapping[str, DocumentRecord]
) -> str | None:
    """Build the user message of the repair call: the claims, followed by the blocks of the documents that
    they cite.

    Return None if `hits` contains no block of a cited document.
    """
    cited = {failure.doc_id for failure in failed}
    cited_hits = [hit for hit in hits if hit.doc_id in cited]
    doc_ids = {hit.doc_id for hit in cited_hits}
    claims = [_claim(failure) for failure in failed if failure.doc_id in doc_ids]
    if not claims:
        return None
    return "\n".join(("<claims>", *claims, "</claims>", documents_with_blocks(cited_hits, records)))


def keeps_numbers(failed: FailedQuotation, replacement: str, language: str) -> bool:
    """Return whether a replacement contains the numbers of the claim that the failed quotation contains,
    because it would otherwise prove only a part of the claim.

    Args:
        language: ISO 639-1 code of the answer.
    """
    before, after = (
        set(unsourced_numbers(failed.claim, [SourceNumbers.of([quote], language)], language))
        for quote in (failed.quote, replacement)
    )
    return after <= before


def _claim(failure: FailedQuotation) -> str:
    content = element("statement", failure.claim) + element("wrong_quote", failure.quote)
    return f'<claim number="{failure.number}" doc_id="{escape(failure.doc_id)}">{content}</claim>'
