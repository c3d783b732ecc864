"""The worker process that parses files and runs SQL over tables: one JSON line in, one JSON line out.

A file may crash the worker or hang it; `parser_process` handles that. The worker ends with its host: when its
input ends, and where the kernel allows also in the middle of a file. It imports little: it starts while
somebody waits.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from shared.documents.models import Chunk, Element, ParsedDocument
from shared.documents.reading import OUTLINE_FILE, PARTS_FILE, encode
from shared.ingestion.chunking import chunk_elements, figures_of
from shared.ingestion.models import Layout, ParsedFile
from shared.ingestion.parsers.context import ParseContext, ServicePages, open_context
from shared.ingestion.registry import MAGIC_BYTES, Format, LayoutParser, Parser, check_content
from shared.ingestion.sandbox import enter_sandbox
from shared.platform.errors import BadDocumentError, FileFailure, GroundworkError
from shared.platform.loading import load, load_module
from shared.platform.models import Model
from shared.platform.tokens import TokenCounter, token_counter
from shared.tables.cards import card
from shared.tables.loader import TableFile
from shared.tables.queries import GuardJob, QueryJob

_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG, prctl(2)
OPENING_CHARS = 6000
MAX_PIECES = 50_000  # ten thousand dense pages; a file of 1 MB can hold five times as many empty ones
MAX_WARNINGS = 20  # a workbook may have thousands of hidden sheets, and all is held in one row of a table
MAX_WARNING_CHARS = 500
READY = "ready\n"


class ParseJob(Model):
    """Read `source`, write a ParsedFile as JSON to `target`.

    Attributes:
        filename: the document's own name; the file at `source` has another one.
        figures: a folder for the pictures.
        max_blocks: of text; more are an error.
        max_figures: 0 = no pictures are kept.
        recognition_budget_s: for all scanned pages and pictures together; 0 = none is read.
        page_texts: what a service read of pages without text, by page number, as yet perhaps nothing; None =
            Tesseract reads them.
        languages: a folder of Tesseract's language data; None = what is installed with the app.
        layout: what a parser service found; None = our own parsers find out.
        reading: a folder for the parts that people read (shared/documents/page_files.py); None = not kept.
        tables: a folder for the rows of its sheets; None = they are not kept.
        hints: what its owner says about them, as YAML.
    """

    kind: Literal["parse"] = "parse"
    source: Path
    target: Path
    filename: str
    max_tokens: int
    max_blocks: int
    tokenizer_path: str | None = None
    figures: Path = Path()
    max_figures: int = 0
    recognition_budget_s: float = 0
    page_texts: dict[int, str] | None = None
    languages: Path | None = None
    layout: Layout | None = None
    reading: Path | None = None
    tables: Path | None = None
    hints: str = ""


class RenderJob(Model):
    """Draw a page of the PDF at `source` into `picture`, a PNG, and write a PageSheet as JSON to `target`."""

    kind: Literal["render"] = "render"
    source: Path
    target: Path
    picture: Path
    page_number: int


class PageTextJob(Model):
    """Write the text of the web page at `source`, a PageText, as JSON to `target`.

    Attributes:
        filename: anything with the suffix of its kind.
        charset: as its server said.
    """

    kind: Literal["page_text"] = "page_text"
    source: Path
    target: Path
    filename: str
    charset: str | None = None


Job = ParseJob | RenderJob | QueryJob | GuardJob | PageTextJob


class WorkerReply(Model):
    """The worker's answer: `ok`, or why the file cannot be read."""

    ok: bool
    reason: str = ""
    hint: str = ""
    failure: FileFailure = "damaged"


def main(
    memory_bytes: int, niceness: int, folder: str, readable: Sequence[str], modules: Sequence[str] = ()
) -> None:
    """Serve until the input ends, within so much address space and these files (see `enter_sandbox`).

    Writes READY first, once the `modules` are imported.
    """
    _end_with_parent()
    if sys.platform != "win32":
        os.nice(niceness)
    # Libraries may print: only this module writes to the pipe that the host reads.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    _limit_memory(memory_bytes)
    enter_sandbox(folder, readable)
    for module in modules:
        import_module(module)
    replies.write(READY)
    replies.flush()
    jobs: TypeAdapter[Job] = TypeAdapter(Annotated[Job, Field(discriminator="kind")])
    for line in sys.stdin:
        replies.write(_reply(jobs.validate_json(line), memory_bytes).model_dump_json() + "\n")
        replies.flush()


def _reply(job: Job, memory_bytes: int) -> WorkerReply:
    try:
        if isinstance(job, QueryJob):
            content = load("shared.tables.sql_worker", "answer")(job).model_dump_json()
        elif isinstance(job, GuardJob):
            content = load("shared.tables.sql_worker", "checked")(job).model_dump_json()
        elif isinstance(job, RenderJob):
            render_page = load("shared.ingestion.parsers.pdf_page", "render_page")
            content = render_page(job.source, job.page_number, job.picture).model_dump_json()
        elif isinstance(job, PageTextJob):
            read_page_text = load("shared.ingestion.parsers.web_text", "read_page_text")
            content = read_page_text(job.source, job.filename, job.charset).model_dump_json()
        else:
            content = parse_file(job).model_dump_json()
        job.target.write_text(content, encoding="utf-8", errors="replace")
    except MemoryError:
        reason = f"Reading the file takes more than {memory_bytes >> 20} MB of memory."
        return WorkerReply(ok=False, reason=reason, hint="Split the file.", failure="too_large")
    except GroundworkError as error:
        return WorkerReply(ok=False, reason=error.detail, hint=" ".join(error.hints), failure=error.failure)
    except Exception as error:  # noqa: BLE001 - a parser met an unexpected file: say so to its owner
        reason = f"The file's structure is not understood ({type(error).__name__})."
        return WorkerReply(ok=False, reason=reason, hint="Export the file again.")
    return WorkerReply(ok=True)


def _end_with_parent() -> None:
    """Have the kernel end this process when its host ends: a busy parser looks at no pipe for minutes."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # it ended in between
            os._exit(1)


def _limit_memory(memory_bytes: int) -> None:
    try:
        resource = load_module("resource")
    except ImportError:  # Windows has no such limit; the time limit holds there, too
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def parse_file(job: ParseJob) -> ParsedFile:
    """Return a file's chunks, and the text from which its metadata is made.

    Raises:
        BadDocumentError: the file cannot be read. The error names the reason and what its owner can do.
    """
    with job.source.open("rb") as file:
        known = check_content(job.filename, file.read(MAGIC_BYTES))
    pages = None if job.page_texts is None else ServicePages(job.page_texts)
    tables = TableFile(job.tables, job.filename) if job.tables else None
    budget_s, languages = job.recognition_budget_s, job.languages
    with open_context(job.figures, job.max_figures, budget_s, pages, tables, languages=languages) as context:
        document = _parse(known, job, context)
    elements = document.elements
    if len(elements) > MAX_PIECES:
        raise BadDocumentError(
            f"The document has {len(elements):,} paragraphs, tables and figures; at most {MAX_PIECES:,} are "
            "read.",
            "Split the file.",
            failure="too_large",
        )
    if job.reading is not None:
        _write_reading(job.reading, document)
    count_tokens = token_counter(job.tokenizer_path)
    chunks = _chunks(elements, job, count_tokens)
    kept = tables.close(job.hints) if tables else ()
    warnings = (*document.warnings, *(tables.notes if tables else ()))
    for table in kept:
        text = card(table, job.max_tokens, count_tokens)
        chunks.append(Chunk(text=text, place=len(elements), page_number=table.page_number, kind="card"))
    if context.figures.left_out and job.max_figures:
        warnings = (*warnings, f"Only the first {job.max_figures} figures were kept (MAX_FIGURES).")
    if not chunks and not warnings:
        warnings = ("The document contains no text, so a search cannot find it.",)
    return ParsedFile(
        chunks=tuple(chunks),
        figures=tuple(figures_of(elements)),
        page_count=document.page_count,
        title=document.title,
        author=document.author,
        first_heading=_first_heading(elements),
        opening=_opening(elements),
        unread_pages=tuple(pages.unread) if pages is not None else (),
        unreadable_pages=document.unreadable_pages,
        warnings=_bounded(warnings),
    )


def _write_reading(folder: Path, document: ParsedDocument) -> None:
    outline, parts = encode(document.elements, document.page_count)
    (folder / PARTS_FILE).write_bytes(parts)
    (folder / OUTLINE_FILE).write_text(outline.model_dump_json(), encoding="utf-8")


def _chunks(elements: Sequence[Element], job: ParseJob, count_tokens: TokenCounter) -> list[Chunk]:
    """Return the chunks of a document.

    Raises:
        BadDocumentError: more than the index takes.
    """
    chunks = chunk_elements(elements, job.max_tokens, count_tokens)
    if len(chunks) > job.max_blocks:
        raise BadDocumentError(
            f"The document makes {len(chunks):,} blocks; at most {job.max_blocks:,} are indexed.",
            "Split the file, or remove tables that don't need to be searched.",
            failure="too_large",
        )
    return chunks


def _opening(elements: Sequence[Element]) -> str:
    """The first characters of the text, headings marked by their level: how large they are set."""
    marked = (
        f"{'#' * (one.level or 1)} {one.text}" if one.kind == "heading" else one.text
        for one in elements[:OPENING_CHARS]
    )
    return "\n\n".join(marked)[:OPENING_CHARS].strip()


def _parse(known: Format, job: ParseJob, context: ParseContext) -> ParsedDocument:
    """By the layout where there is one, unless the service read fewer pages than the file has."""
    parse: Parser = resolve_name(known.parser)
    if job.layout is None:
        return parse(job.source, context)
    parse_layout: LayoutParser = resolve_name(known.layout_parser)
    document = parse_layout(job.source, job.layout, context)
    if document is not None:
        return document
    pages = "page was" if job.layout.page_count == 1 else "pages were"
    read = f"Only {job.layout.page_count} {pages} read by {job.layout.service}"
    document = parse(job.source, context)
    warnings = (f"{read}: the built-in parser read the file.", *document.warnings)
    return document.model_copy(update={"warnings": warnings})


def _first_heading(elements: Sequence[Element]) -> str | None:
    """The first of the highest level; in documents with pages, one on the first two."""
    headings = [one for one in elements if one.kind == "heading" and (one.page_number or 1) <= 2]
    return min(headings, key=lambda heading: heading.level or 1).text if headings else None


def _bounded(warnings: Sequence[str]) -> tuple[str, ...]:
    shown = [
        text if len(text) <= MAX_WARNING_CHARS else f"{text[:MAX_WARNING_CHARS]} …"
        for text in warnings[:MAX_WARNINGS]
    ]
    more = len(warnings) - len(shown)
    return (*shown, f"{more} more warnings.") if more else tuple(shown)
