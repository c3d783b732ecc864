"""What each profile of sub-agent reports: the output schemas that models fill (contracts.md, section 4).

No bounds, lengths or patterns: endpoints refuse a strict schema with these; code holds values to them.

Proofs are quotations, verbatim from the passages that the sub-agent was shown; whether they are is checked by
code, and a statement whose proofs do not hold is not handed on as proved.
"""

from shared.models.base import Model


class Proof(Model):
    """A quotation, word by word, from a passage of the document `doc_id`."""

    doc_id: str
    quote: str


class Claim(Model):
    """One statement with its proofs."""

    text: str
    proofs: tuple[Proof, ...]


class SectionSummary(Model):
    """What one part of a document says."""

    heading: str
    summary: str


class DocReaderReport(Model):
    """Of doc_reader. `uncertainty`: what the passages leave open, a sentence each."""

    sections: tuple[SectionSummary, ...]
    claims: tuple[Claim, ...]
    uncertainty: tuple[str, ...]


class Side(Model):
    """What one document says on a dimension; no quote when it says nothing of it."""

    doc_id: str
    statement: str
    quote: str


class Contrast(Model):
    """One dimension with what each document says on it."""

    dimension: str
    sides: tuple[Side, ...]


class ComparatorReport(Model):
    """Of comparator. `open_dimensions`: asked for, and not found in the documents."""

    similarities: tuple[Claim, ...]
    differences: tuple[Contrast, ...]
    conflicts: tuple[Contrast, ...]
    open_dimensions: tuple[str, ...]


class BackedClaim(Model):
    """A statement with its proofs; none means that it is unsupported. `confidence`: from 0 to 1."""

    text: str
    confidence: float
    proofs: tuple[Proof, ...]


class EvidenceReport(Model):
    """Of evidence_builder: each major claim, backed or marked unsupported."""

    claims: tuple[BackedClaim, ...]


class WebSource(Model):
    """A page of the web, with a quotation from what was found there."""

    url: str
    title: str
    quote: str


class WebClaim(Model):
    """A statement and the pages that say it; corroborated when two sites or more do."""

    text: str
    sources: tuple[WebSource, ...]


class WebReport(Model):
    """Of web_verifier. `trust_notes`: how far its sources can be trusted, a sentence each."""

    claims: tuple[WebClaim, ...]
    trust_notes: tuple[str, ...]
