"""Splitting what is to be summarised into pieces that a model reads at once. Pure.

Sizes are estimates: 3.6 characters a token, as where blocks are cut without the model's tokenizer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from shared.evidence.citations import marker
from shared.evidence.messages import ENGLISH, GERMAN, Messages, messages_for
from shared.evidence.models import Citation
from shared.evidence.quotes import normalise
from shared.summaries.models import (
    DocumentResult,
    Finding,
    Metric,
    Statement,
    SummarisedDocument,
    SummaryResult,
)

MAX_METRICS = 60
_PARAGRAPH = 3  # statements; a wall of text is not read


@dataclass
class _Numbers:
    """Citations in the order in which they appear; the same quotation keeps its number."""

    citations: list[Citation] = field(default_factory=list)
    _known: dict[tuple[str, str], Citation] = field(default_factory=dict)

    def of(self, citation: Citation) -> Citation:
        key = (citation.block_id, normalise(citation.quote))
        if key not in self._known:
            self._known[key] = citation.model_copy(update={"n": len(self.citations) + 1})
            self.citations.append(self._known[key])
        return self._known[key]


def summary_result(
    documents: Sequence[DocumentResult],
    findings: Sequence[Finding],
    statements: Sequence[Statement],
    *,
    key_places: Sequence[int],
    metrics: Sequence[Metric],
    tags: Sequence[str],
    warnings: Sequence[str],
    words: Messages = ENGLISH,
) -> SummaryResult:
    """The summary whole.

    Args:
        findings: what statements and `key_places` refer to by their places.
        warnings: beside those of the documents.
    """
    numbers = _Numbers()
    text = _narrative(statements, findings, numbers, words)
    return SummaryResult(
        summary=text,
        key_findings=tuple(
            findings[place].model_copy(update={"citation": numbers.of(findings[place].citation)})
            for place in key_places
        ),
        metrics=tuple(
            metric.model_copy(update={"citation": numbers.of(metric.citation)})
            for metric in metrics[:MAX_METRICS]
        ),
        tags=tuple(tags),
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
        warnings=(*(document.warning for document in documents if document.warning), *warnings),
    )


def without_documents(result: SummaryResult, closed: frozenset[str]) -> SummaryResult:
    """What is left of a stored result for a reader who may not read these documents any more.

    The narrative tells of all documents together, so it goes whole with any of them.
    """
    told = {document.doc_id for document in result.documents if document.status in ("done", "partial")}
    if not closed & told:
        return result
    return SummaryResult(
        summary="",
        key_findings=tuple(one for one in result.key_findings if one.citation.doc_id not in closed),
        metrics=tuple(one for one in result.metrics if one.citation.doc_id not in closed),
        citations=tuple(one for one in result.citations if one.doc_id not in closed),
        documents=tuple(
            SummarisedDocument(doc_id=one.doc_id, status="not_found", warning=not_found(one.doc_id))
            if one.doc_id in closed
            else one
            for one in result.documents
        ),
        warnings=("The summary is withheld: it tells of a document that cannot be read any more.",),
    )


def not_found(doc_id: str) -> str:
    """The warning of a document that is not there, or not for this reader."""
    return f"There is no document {doc_id[:64]!r}."


def words_of(language: str | None, focus: str) -> Messages:
    """Our own words: in the language asked for, else in that of the focus; English or German."""
    if language:
        return GERMAN if language.lower().split("-")[0] == "de" else ENGLISH
    return messages_for(focus)


def _narrative(
    statements: Sequence[Statement], findings: Sequence[Finding], numbers: _Numbers, words: Messages
) -> str:
    said = [_said(statement, findings, numbers, words) for statement in statements]
    paragraphs = [" ".join(said[start : start + _PARAGRAPH]) for start in range(0, len(said), _PARAGRAPH)]
    return "\n\n".join(paragraphs)


def _said(statement: Statement, findings: Sequence[Finding], numbers: _Numbers, words: Messages) -> str:
    proofs = dict.fromkeys(marker(numbers.of(findings[place].citation)) for place in statement.findings)
    return statement.text + ("".join(proofs) if proofs else words.unsupported)


def split(sizes: Sequence[int], most: int) -> list[range]:
    """Places of neighbours that together have at most `most` tokens; one that is larger stands alone."""
    pieces: list[range] = []
    start = total = 0
    for place, size in enumerate(sizes):
        if place > start and total + size > most:
            pieces.append(range(start, place))
            start, total = place, 0
        total += size
    if sizes:
        pieces.append(range(start, len(sizes)))
    return pieces


def windows_of(
    blocks: Sequence[tuple[str, int]], most_tokens: int, most_windows: int
) -> tuple[tuple[tuple[str, ...], ...], int]:
    """Windows of block ids, and how many blocks are left out behind the last window that is admitted.

    Args:
        blocks: (block id, tokens) in the order of the document.
    """
    pieces = split([size for _, size in blocks], most_tokens)
    windows = tuple(tuple(blocks[place][0] for place in piece) for piece in pieces[:most_windows])
    return windows, len(blocks) - sum(len(window) for window in windows)
