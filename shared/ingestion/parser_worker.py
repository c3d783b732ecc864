"""The worker process that parses files: `python -c "…; main()"`, one JSON line in, one JSON line out.

A file may crash the worker or hang it; `parser_process` handles that. The worker ends when its input ends, so
it does not outlive the host. It touches no network, and imports little: it starts while somebody waits.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from shared.documents.models import Element, ParsedDocument
from shared.documents.page_models import Reading
from shared.ingestion.chunking import chunk_elements
from shared.ingestion.figures import figures_of
from shared.ingestion.models import Layout, PageTexts, ParsedFile
from shared.ingestion.parsers.context import ParseContext, ServicePages, open_context
from shared.ingestion.registry import MAGIC_BYTES, Format, check_content, parse_with, parse_with_layout
from shared.platform.errors import GroundworkError
from shared.platform.models import Model
from shared.platform.tokens import token_counter

MEMORY_LIMIT_BYTES = 3 << 30  # of address space; the 252-page filing of financebench takes 0.3 GB of it
OPENING_CHARS = 6000
MAX_WARNINGS = 20  # a workbook may have thousands of hidden sheets, and all is held in one row of a table
MAX_WARNING_CHARS = 500


class ParseJob(Model):
    """Read `source`, write a ParsedFile as JSON to `target`.

    Attributes:
        filename: the document's own name; the file at `source` is called otherwise.
        figures: an empty folder for the pictures; None = no figures and no text recognition.
        recognition_budget_s: for all scanned pages and pictures together; 0 = none is read.
        pages_by_service: pages without text are read by a service, and not by Tesseract.
        page_texts: what the service read, a PageTexts as JSON; None = nothing yet.
        reading: where the document's elements go, a Reading as JSON; None = they are not kept.
        layout: what a parser service found, a Layout as JSON; None = our own parsers find out.
    """

    kind: Literal["parse"] = "parse"
    source: Path
    target: Path
    filename: str
    max_tokens: int
    tokenizer_path: str | None = None
    figures: Path | None = None
    max_figures: int = 0
    recognition_budget_s: float = 0
    pages_by_service: bool = False
    page_texts: Path | None = None
    layout: Path | None = None
    reading: Path | None = None


class RenderJob(Model):
    """Draw a page of the PDF at `source` into `picture`, a PNG, and write a PageSheet as JSON to `target`."""

    kind: Literal["render"] = "render"
    source: Path
    target: Path
    picture: Path
    page_number: int


Job = ParseJob | RenderJob


class WorkerReply(Model):
    """The worker's answer: `ok`, or why the file cannot be read."""

    ok: bool
    reason: str = ""
    hint: str = ""


def main() -> None:
    """Serve until the input ends."""
    # Libraries may print: only this module writes to the pipe that the owner reads.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    _limit_memory()
    jobs: TypeAdapter[Job] = TypeAdapter(Annotated[Job, Field(discriminator="kind")])
    for line in sys.stdin:
        replies.write(_reply(jobs.validate_json(line)).model_dump_json() + "\n")
        replies.flush()


def _reply(job: Job) -> WorkerReply:
    try:
        _run(job)
    except MemoryError:
        limit_gib = MEMORY_LIMIT_BYTES >> 30
        reason = f"Reading the file takes more than {limit_gib} GiB of memory."
        return WorkerReply(ok=False, reason=reason, hint="Split the file.")
    except GroundworkError as error:
        return WorkerReply(ok=False, reason=error.detail, hint=" ".join(error.hints))
    except Exception as error:  # noqa: BLE001 - a parser met an unexpected file; its owner is told
        reason = f"The file's structure is not understood ({type(error).__name__})."
        return WorkerReply(ok=False, reason=reason, hint="Export the file again.")
    return WorkerReply(ok=True)


def _run(job: Job) -> None:
    if isinstance(job, RenderJob):
        from shared.ingestion.parsers.pdf_page import render_page

        content = render_page(job.source, job.page_number, job.picture).model_dump_json()
    else:
        content = parse_file(job).model_dump_json()
    job.target.write_text(content, encoding="utf-8", errors="replace")


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limit; the time limit holds there, too
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft = MEMORY_LIMIT_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def parse_file(job: ParseJob) -> ParsedFile:
    """The file's chunks, and what its metadata can be made from.

    Raises:
        BadDocumentError: the file cannot be read; the reason and what its owner can do.
    """
    with job.source.open("rb") as file:
        known = check_content(job.filename, file.read(MAGIC_BYTES))
    service_pages = None
    if job.pages_by_service:
        texts = PageTexts.model_validate_json(job.page_texts.read_bytes()).texts if job.page_texts else {}
        service_pages = ServicePages(texts)
    folder = job.figures or job.target.parent
    max_figures = job.max_figures if job.figures else 0
    with open_context(folder, max_figures, job.recognition_budget_s, service_pages) as context:
        document = _parse(known, job, context)
    if job.reading is not None:
        reading = Reading(elements=document.elements, page_count=document.page_count)
        job.reading.write_text(reading.model_dump_json(), encoding="utf-8", errors="replace")
    chunks = chunk_elements(document.elements, job.max_tokens, token_counter(job.tokenizer_path))
    warnings = document.warnings
    if context.figures.left_out and max_figures:
        warnings = (*warnings, f"Only the first {max_figures} figures were kept (MAX_FIGURES).")
    if not chunks and not warnings:
        warnings = ("The document holds no text, so a search cannot find it.",)
    return ParsedFile(
        chunks=tuple(chunks),
        figures=tuple(figures_of(document.elements)),
        page_count=document.page_count,
        title=document.title,
        author=document.author,
        first_heading=_first_heading(document),
        opening=_opening(document.elements),
        unread_pages=context.unread_pages,
        warnings=_bounded(warnings),
    )


def _parse(known: Format, job: ParseJob, context: ParseContext) -> ParsedDocument:
    """By the layout where there is one, unless the service read fewer pages than the file has."""
    if job.layout is None:
        return parse_with(known, job.source, context)
    layout = Layout.model_validate_json(job.layout.read_bytes())
    document = parse_with_layout(known, job.source, layout, context)
    if document is not None:
        return document
    pages = "page was" if layout.page_count == 1 else "pages were"
    note = f"Only {layout.page_count} {pages} read by {layout.service}: the built-in parser read the file."
    document = parse_with(known, job.source, context)
    return document.model_copy(update={"warnings": (note, *document.warnings)})


def _first_heading(document: ParsedDocument) -> str | None:
    """The first of the highest level; in documents with pages, one on the first two."""
    headings = [
        element
        for element in document.elements
        if element.kind == "heading" and (element.page_number or 1) <= 2
    ]
    return min(headings, key=lambda element: element.level or 1).text if headings else None


def _opening(elements: tuple[Element, ...]) -> str:
    text = ""
    for element in elements:
        text += element.text + "\n\n"
        if len(text) >= OPENING_CHARS:
            break
    return text[:OPENING_CHARS].strip()


def _bounded(warnings: tuple[str, ...]) -> tuple[str, ...]:
    shown = tuple(
        text if len(text) <= MAX_WARNING_CHARS else f"{text[:MAX_WARNING_CHARS]} …"
        for text in warnings[:MAX_WARNINGS]
    )
    more = len(warnings) - len(shown)
    return (*shown, f"{more} more warnings.") if more else shown
