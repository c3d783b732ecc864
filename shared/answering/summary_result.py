"""Renders the result of a summary: its narrative, its citations and its warnings. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from shared.answering.summary_models import (
    DocumentResult,
    Finding,
    Metric,
    Statement,
    SummarisedDocument,
    SummaryResult,
)
from shared.evidence.alignment import normalise
from shared.evidence.citations import marker
from shared.evidence.messages import ENGLISH, Messages
from shared.evidence.models import Citation

MAX_METRICS = 60
# Maximum number of statements per paragraph. Longer paragraphs are hard to read.
_PARAGRAPH = 3


@dataclass
class _Numbers:
    """Citations numbered in order of appearance. A repeated quotation keeps its number."""

    citations: list[Citation] = field(default_factory=list)
    _known: dict[tuple[str, str], Citation] = field(default_factory=dict)

    def of(self, citation: Citation) -> Citation:
        key = (citation.block_id, normalise(citation.quote))
        if key not in self._known:
            self._known[key] = citation.model_copy(update={"n": len(self.citations) + 1})
            self.citations.append(self._known[key])
        return self._known[key]


@dataclass(frozen=True)
class Narrative:
    """A narrative and the findings that it refers to.

    Attributes:
        findings: referenced by index in statements and `key_places`.
        error_type: code of the model's error; then the statements are a sample of the findings.
    """

    findings: Sequence[Finding] = ()
    statements: Sequence[Statement] = ()
    key_places: Sequence[int] = ()
    tags: Sequence[str] = ()
    error_type: str | None = None


def summary_result(
    documents: Sequence[DocumentResult],
    narrative: Narrative,
    metrics: Sequence[Metric] = (),
    messages: Messages = ENGLISH,
) -> SummaryResult:
    """Build the result of a summary, with citations numbered in order of appearance."""
    numbers, findings = _Numbers(), narrative.findings
    text = _text(narrative, numbers, messages)
    failed = f"The documents' findings were not merged: the model failed ({narrative.error_type})."
    return SummaryResult(
        summary=text,
        key_findings=tuple(
            findings[place].model_copy(update={"citation": numbers.of(findings[place].citation)})
            for place in narrative.key_places
        ),
        metrics=tuple(
            metric.model_copy(update={"citation": numbers.of(metric.citation)})
            for metric in metrics[:MAX_METRICS]
        ),
        tags=tuple(narrative.tags),
        citations=tuple(numbers.citations),
        documents=tuple(
            SummarisedDocument(
                doc_id=document.doc_id,
                filename=document.filename,
                status=document.status,
                warning=document.warning,
            )
            for document in documents
        ),
        warnings=(
            *(document.warning for document in documents if document.warning),
            *([failed] if narrative.error_type else []),
        ),
    )


def without_documents(result: SummaryResult, closed: frozenset[str]) -> SummaryResult:
    """Return a stored result as a reader may see it who can no longer read the documents in `closed`.

    The narrative covers all documents together, so it is withheld entirely.
    """
    used = {document.doc_id for document in result.documents if document.status in ("done", "partial")}
    if not closed & used:
        return result
    return SummaryResult(
        summary="",
        key_findings=tuple(one for one in result.key_findings if one.citation.doc_id not in closed),
        metrics=tuple(one for one in result.metrics if one.citation.doc_id not in closed),
        citations=tuple(one for one in result.citations if one.doc_id not in closed),
        documents=tuple(
            SummarisedDocument(doc_id=one.doc_id, status="not_found", warning=not_found_warning(one.doc_id))
            if one.doc_id in closed
            else one
            for one in result.documents
        ),
        warnings=("The summary is withheld: it covers a document that can no longer be read.",),
    )


def not_found_warning(doc_id: str) -> str:
    """Return the warning for a missing or forbidden document. It is the same for both."""
    return f"There is no document {doc_id[:64]!r}."


def _text(narrative: Narrative, numbers: _Numbers, messages: Messages) -> str:
    parts: list[str] = []
    for statement in narrative.statements:
        citations = (narrative.findings[place].citation for place in statement.findings)
        proofs = dict.fromkeys(marker(numbers.of(citation)) for citation in citations)
        parts.append(statement.text + ("".join(proofs) or messages.unsupported))
    paragraphs = (parts[start : start + _PARAGRAPH] for start in range(0, len(parts), _PARAGRAPH))
    return "\n\n".join(" ".join(paragraph) for paragraph in paragraphs)
