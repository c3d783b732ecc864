"""Models of the ingestion report, and its totals. Pure."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Literal, get_args

from pydantic import Field

from shared.platform.models import Model

Ending = Literal["ready", "ready_with_warning", "failed", "crashed", "timed_out"]

# Parts of error messages that indicate a fault of the app rather than of the file.
_CRASHES = ("crashed the parser", "internal error", "ended without an answer", "structure is not understood")
_TIMEOUTS = ("took longer than",)


class FileReport(Model):
    """The result of ingesting one file.

    Attributes:
        status: one of five endings; `crashed` and `timed_out` are our failures, not the file's.
        seconds: from the upload until its end was noticed.
        phase_seconds, model_calls: per phase, from the ingestion's history.
        blocks: rows in the index, including figures.
        word_recall: share of the reference's words found in the index; None without a reference.
    """

    file: str
    status: Ending
    reason: str | None = None
    hint: str | None = None
    warnings: tuple[str, ...] = ()
    seconds: float
    phase_seconds: dict[str, float] = Field(default_factory=dict)
    model_calls: dict[str, int] = Field(default_factory=dict)
    size_bytes: int
    pages: int | None = None
    blocks: int = 0
    figures: int = 0
    word_recall: float | None = None


class Summary(Model):
    """Totals over all files. Each file is counted under exactly one of the five statuses."""

    files: int
    ready: int
    ready_with_warning: int
    failed: int
    crashed: int
    timed_out: int
    median_recall: dict[str, float]
    pages: int
    blocks: int
    figures: int
    seconds: float


class Report(Model):
    """The complete report: totals and the result for each file."""

    summary: Summary
    files: tuple[FileReport, ...]


def ending_of(status: str, reason: str | None, warnings: Sequence[str]) -> Ending:
    """Classify how an ingestion ended, based on the document's status, reason and warnings."""
    if status == "ready":
        return "ready_with_warning" if warnings else "ready"
    if any(sign in (reason or "") for sign in _TIMEOUTS):
        return "timed_out"
    return "crashed" if any(sign in (reason or "") for sign in _CRASHES) else "failed"


def summarize(files: Sequence[FileReport], seconds: float) -> Report:
    """Return the report on all files. `seconds` is the total duration of the ingestion."""
    counts = {kind: sum(file.status == kind for file in files) for kind in get_args(Ending)}
    summary = Summary(
        files=len(files),
        **counts,
        median_recall=_median_recall(files),
        pages=sum(file.pages or 0 for file in files),
        blocks=sum(file.blocks for file in files),
        figures=sum(file.figures for file in files),
        seconds=round(seconds, 1),
    )
    return Report(summary=summary, files=tuple(files))


def _median_recall(files: Sequence[FileReport]) -> dict[str, float]:
    by_suffix: dict[str, list[float]] = defaultdict(list)
    for file in files:
        if file.word_recall is not None:
            by_suffix[_suffix(file.file)].append(file.word_recall)
    return {suffix: round(median(recalls), 4) for suffix, recalls in sorted(by_suffix.items())}


def _suffix(name: str) -> str:
    _, dot, suffix = name.rpartition("/")[2].rpartition(".")
    return (dot + suffix).lower() if dot else ""
