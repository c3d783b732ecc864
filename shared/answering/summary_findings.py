"""Checks the findings of a summary against the documents, removes repetitions, and numbers them for the
model. Pure.

Every statement of a model needs a quotation that occurs verbatim in a block of the document.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from shared.answering.summary_models import (
    Finding,
    MergedStatement,
    Metric,
    Statement,
    WindowMetric,
    WindowResult,
    WindowSummary,
)
from shared.evidence.alignment import holds_words, normalise
from shared.evidence.citations import CitationBook
from shared.evidence.reader_text import readable, readable_line
from shared.evidence.text import cut_at_word
from shared.retrieval.models import Hit

MAX_TEXT_CHARS = 600
MAX_TAG_CHARS = 40
MAX_TAGS = 8


def proved_window(output: WindowSummary, hits: Sequence[Hit], source_url: str | None = None) -> WindowResult:
    """Return the findings and metrics whose quotations occur in the blocks of the window, and the number of
    the others.

    Args:
        hits: the window's blocks, all of one document.
    """
    urls = {hit.doc_id: source_url for hit in hits if source_url}
    book = CitationBook(hits=tuple(hit for hit in hits if hit.block_type == "text"), source_urls=urls)
    doc_id = hits[0].doc_id if hits else ""
    findings = []
    for finding in output.findings:
        proof = book.prove(doc_id, finding.quote)
        if proof and (text := _sanitised(finding.text)):
            findings.append(Finding(text=text, citation=proof[0]))
    metrics = [
        metric for metric_output in output.metrics if (metric := _proved_metric(metric_output, book, doc_id))
    ]
    total = len(output.findings) + len(output.metrics)
    return WindowResult(
        findings=tuple(findings),
        metrics=tuple(metrics),
        tags=clean_tags(output.tags),
        dropped=total - len(findings) - len(metrics),
    )


def _proved_metric(output: WindowMetric, book: CitationBook, doc_id: str) -> Metric | None:
    name, value = _sanitised(output.name), " ".join(output.value.split())
    if (
        not name
        or not any(character.isdigit() for character in value)
        or not holds_words(output.quote, value)
    ):
        return None
    proof = book.prove(doc_id, output.quote)
    if proof is None:
        return None
    unit = " ".join((output.unit or "").split())
    block = next(hit.content for hit in book.hits if hit.block_id == proof[0].block_id)
    # Search the whole block for the unit, because the units of a table are in its header.
    occurs = bool(unit) and normalise(unit).lower() in normalise(block).lower()
    return Metric(
        name=name,
        value=readable(value),
        unit=readable(unit)[:MAX_TAG_CHARS] if occurs else None,
        citation=proof[0],
    )


def without_repeats(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings in order, without those that repeat the text or the quotation of an earlier one."""
    seen: set[str] = set()
    distinct = []
    for finding in findings:
        keys = {
            f"text {normalise(finding.text).casefold()}",
            f"quote {finding.citation.doc_id} {normalise(finding.citation.quote).casefold()}",
        }
        if not keys & seen:
            distinct.append(finding)
        seen |= keys
    return distinct


def without_repeated_metrics(metrics: Iterable[Metric]) -> list[Metric]:
    """Return the metrics in order, without those that repeat an earlier name, value and unit of the same
    document.
    """
    unique: dict[tuple[str, str, str, str], Metric] = {}
    for metric in metrics:
        key = (metric.citation.doc_id, metric.name.casefold(), normalise(metric.value), metric.unit or "")
        unique.setdefault(key, metric)
    return list(unique.values())


def common_tags(groups: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the tags that occur in the most groups, the most frequent first."""
    counts = Counter(tag for group in groups for tag in dict.fromkeys(group))
    return tuple(tag for tag, _ in counts.most_common(MAX_TAGS))


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct tags in lower case, each sanitised, truncated and on one line."""
    cleaned = (readable(" ".join(tag.split())).strip(" #.,;").lower()[:MAX_TAG_CHARS] for tag in tags)
    return tuple(dict.fromkeys(tag for tag in cleaned if tag))[:MAX_TAGS]


def numbered_passages(findings: Sequence[Finding]) -> str:
    """Render the findings as `<passages>`, each with its file name and a number, counted from 1."""
    rows = "\n".join(
        f'<passage number="{number}" document="{escape(finding.citation.filename)}">'
        f"{escape(finding.text, quote=False)}</passage>"
        for number, finding in enumerate(findings, start=1)
    )
    return f"<passages>\n{rows}\n</passages>"


def places(numbers: Iterable[int], count: int) -> tuple[int, ...]:
    """Convert numbers from the model (from 1) to distinct indexes (from 0). Drop numbers outside of 1 to
    `count`.
    """
    return tuple(dict.fromkeys(number - 1 for number in numbers if 1 <= number <= count))


def statements_of(merged: Sequence[MergedStatement], count: int) -> tuple[Statement, ...]:
    """Convert the model's narrative to statements. References to findings that don't exist are dropped."""
    return tuple(
        Statement(text=text, findings=places(output.findings, count))
        for output in merged
        if (text := _sanitised(output.text))
    )


def statements_without_model(findings: Sequence[Finding]) -> tuple[Statement, ...]:
    """Return each finding as a statement. Together they replace the narrative if the model fails."""
    return tuple(Statement(text=finding.text, findings=(place,)) for place, finding in enumerate(findings))


def _sanitised(text: str) -> str:
    """Return a model text on one line, sanitised and truncated at a word boundary."""
    return cut_at_word(readable_line(text), MAX_TEXT_CHARS)
