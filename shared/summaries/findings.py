"""Findings of a summary: proved, without repetitions, numbered for a model, chosen by it. Pure.

Nothing a model says reaches a summary without a quotation that stands verbatim in a block of the document.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from shared.evidence.alignment import holds_words, normalise
from shared.evidence.citations import CitationBook
from shared.evidence.reader_text import readable, readable_line
from shared.retrieval.models import Hit
from shared.summaries.models import (
    Finding,
    MergedStatement,
    Metric,
    Statement,
    WindowMetric,
    WindowResult,
    WindowSummary,
)

MAX_TEXT_CHARS = 600
MAX_TAG_CHARS = 40
MAX_TAGS = 8


def proved_window(output: WindowSummary, hits: Sequence[Hit], source_url: str | None = None) -> WindowResult:
    """What of a model's findings and metrics stands in the window's blocks; the rest is dropped and counted.

    Args:
        hits: the window's blocks, all of one document.
    """
    urls = {hit.doc_id: source_url for hit in hits if source_url}
    book = CitationBook(hits=tuple(hit for hit in hits if hit.block_type == "text"), source_urls=urls)
    doc_id = hits[0].doc_id if hits else ""
    findings = []
    for found in output.findings:
        proof = book.prove(doc_id, found.quote)
        if proof and (text := one_line(found.text)):
            findings.append(Finding(text=text, citation=proof[0]))
    metrics = [metric for given in output.metrics if (metric := _proved_metric(given, book, doc_id))]
    asked = len(output.findings) + len(output.metrics)
    return WindowResult(
        findings=tuple(findings),
        metrics=tuple(metrics),
        tags=clean_tags(output.tags),
        dropped=asked - len(findings) - len(metrics),
    )


def _proved_metric(given: WindowMetric, book: CitationBook, doc_id: str) -> Metric | None:
    name, value = one_line(given.name), " ".join(given.value.split())
    if not name or not any(character.isdigit() for character in value) or not holds_words(given.quote, value):
        return None
    proof = book.prove(doc_id, given.quote)
    if proof is None:
        return None
    unit = " ".join((given.unit or "").split())
    block = next(hit.content for hit in book.hits if hit.block_id == proof[0].block_id)
    stands = (
        bool(unit) and normalise(unit).lower() in normalise(block).lower()
    )  # a table names units in its head
    return Metric(
        name=name,
        value=readable(value),
        unit=readable(unit)[:MAX_TAG_CHARS] if stands else None,
        citation=proof[0],
    )


def without_repeats(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, each text and each quotation once, in order."""
    seen: set[str] = set()
    kept = []
    for finding in findings:
        keys = {
            f"text {normalise(finding.text).casefold()}",
            f"quote {finding.citation.doc_id} {normalise(finding.citation.quote).casefold()}",
        }
        if not keys & seen:
            kept.append(finding)
        seen |= keys
    return kept


def without_repeated_metrics(metrics: Iterable[Metric]) -> list[Metric]:
    """The metrics, each name with its value once in a document, in order."""
    unique: dict[tuple[str, str, str, str], Metric] = {}
    for metric in metrics:
        key = (metric.citation.doc_id, metric.name.casefold(), normalise(metric.value), metric.unit or "")
        unique.setdefault(key, metric)
    return list(unique.values())


def common_tags(groups: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """The tags that most groups have, the commonest first; equals in order of appearance."""
    counts = Counter(tag for group in groups for tag in dict.fromkeys(group))
    return tuple(tag for tag, _ in counts.most_common(MAX_TAGS))


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags on one line, lower case, short, each once."""
    cleaned = (readable(" ".join(tag.split())).strip(" #.,;").lower()[:MAX_TAG_CHARS] for tag in tags)
    return tuple(dict.fromkeys(tag for tag in cleaned if tag))[:MAX_TAGS]


def numbered(findings: Sequence[Finding]) -> str:
    """`<passages>` with each finding's text, escaped, under its number from 1, and the file it is from."""
    rows = "\n".join(
        f'<passage number="{number}" document="{escape(finding.citation.filename)}">'
        f"{escape(finding.text, quote=False)}</passage>"
        for number, finding in enumerate(findings, start=1)
    )
    return f"<passages>\n{rows}\n</passages>"


def places(numbers: Iterable[int], count: int) -> tuple[int, ...]:
    """Places (from 0) of the numbers that were given to the model, each once; others stand for nothing."""
    return tuple(dict.fromkeys(number - 1 for number in numbers if 1 <= number <= count))


def statements_of(merged: Sequence[MergedStatement], count: int) -> tuple[Statement, ...]:
    """The narrative of a model, its references checked."""
    return tuple(
        Statement(text=text, findings=places(given.findings, count))
        for given in merged
        if (text := one_line(given.text))
    )


def own_statements(findings: Sequence[Finding]) -> tuple[Statement, ...]:
    """A narrative without a model: the findings as they are."""
    return tuple(Statement(text=finding.text, findings=(place,)) for place, finding in enumerate(findings))


def one_line(text: str) -> str:
    """What a model wrote, on one line, cut at a word, and safe to show."""
    shown = readable_line(text)
    return shown if len(shown) <= MAX_TEXT_CHARS else shown[:MAX_TEXT_CHARS].rpartition(" ")[0] + " …"
