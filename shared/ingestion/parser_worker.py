"""Worker process that parses files and queries tables with SQL. It exchanges one JSON line per job with the
app.

A file may crash or hang the worker, which `parser_process` handles. The worker exits with its host: when its
input ends, and on Linux also during a job. It imports little at start, because users may be waiting for it.
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
from shared.ingestion.parsers.text import is_default_name
from shared.ingestion.registry import MAGIC_BYTES, Format, LayoutParser, Parser, check_content
from shared.ingestion.sandbox import enter_sandbox
from shared.platform.errors import BadDocumentError, FileFailure, GroundworkError
from shared.platform.loading import load, load_module
from shared.platform.models import Model
from shared.platform.tokens import TokenCounter, token_counter
from shared.tables.cards import card
from shared.tables.loader import TableFile
from shared.tables.queries import GuardJob, QueryJob

# PR_SET_PDEATHSIG, see prctl(2).
_PARENT_DEATH_SIGNAL = 1
OPENING_CHARS = 6000
# Maximum number of elements, as in ten thousand dense pages. A 1 MB file can contain five times as many empty
# elements.
MAX_PIECES = 50_000
# Maximum number of warnings per document. A workbook may cause thousands, one per hidden sheet, and all are
# stored in one table row.
MAX_WARNINGS = 20
MAX_WARNING_CHARS = 500
READY = "ready\n"


class ParseJob(Model):
    """A request to parse `source` and write a `ParsedFile` as JSON to `target`.

    Attributes:
        filename: name of the document, which differs from the name of `source`.
        figures: folder for pictures.
        max_blocks: maximum number of text blocks; more cause an error.
        max_figures: maximum number of pictures; 0 = store no pictures.
        recognition_budget_s: time limit for all scanned pages and pictures; 0 disables text recognition.
        page_texts: text that a service read from scanned pages, by page number; empty in the first round.
            None = use Tesseract.
        languages: folder with Tesseract language data; None = the installed data.
        layout: result of a parser service; None = use the built-in parsers.
        reading: folder for the parts shown to readers (shared/documents/page_files.py); None = not stored.
        tables: folder for spreadsheet rows; None = not stored.
        hints: the owner's description of the tables, as YAML.
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
    """A request to render a PDF page to the PNG file `picture` and write a `PageSheet` to `target`."""

    kind: Literal["render"] = "render"
    source: Path
    target: Path
    picture: Path
    page_number: int


class PageTextJob(Model):
    """A request to extract the text of a web page, and write a `PageText` as JSON to `target`.

    Attributes:
        filename: any name with the suffix of the format.
        charset: encoding declared by the server.
    """

    kind: Literal["page_text"] = "page_text"
    source: Path
    target: Path
    filename: str
    charset: str | None = None


Job = ParseJob | RenderJob | QueryJob | GuardJob | PageTextJob


class WorkerReply(Model):
    """Reply to one job: success, or the reason why the file cannot be read."""

    ok: bool
    reason: str = ""
    hint: str = ""
    failure: FileFailure = "damaged"


def main(
    memory_bytes: int, niceness: int, folder: str, readable: Sequence[str], modules: Sequence[str] = ()
) -> None:
    """Serve jobs from standard input until it ends, in a sandbox with a memory limit.

    Write `READY` after importing `modules`. See `enter_sandbox` for `folder` and `readable`.
    """
    _end_with_parent()
    if sys.platform != "win32":
        os.nice(niceness)
    # Redirect standard output: libraries may print, but only replies may be written to the host's pipe.
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
            content = load("shared.tables.sql_worker", "check_query")(job).model_dump_json()
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
        return memory_reply(memory_bytes)
    except GroundworkError as error:
        return WorkerReply(ok=False, reason=error.detail, hint=" ".join(error.hints), failure=error.failure)
    except Exception as error:  # noqa: BLE001 - report unexpected content to the owner of the file
        reason = f"The file's structure is not understood ({type(error).__name__})."
        return WorkerReply(ok=False, reason=reason, hint="Export the file again.")
    return WorkerReply(ok=True)


def memory_reply(memory_bytes: int) -> WorkerReply:
    """Return the reply for a job that needs more memory than the limit of the worker."""
    return WorkerReply(
        ok=False,
        reason=f"Reading the file takes more than {memory_bytes >> 20} MB of memory.",
        hint="Split the file, or save its text as a .txt file.",
        failure="needs_memory",
    )


def _end_with_parent() -> None:
    """Have the kernel kill this process when its host exits, because a busy parser wouldn't notice the closed
    pipe.
    """
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        # The host exited before prctl was called, so no signal will arrive.
        if os.getppid() != parent:
            os._exit(1)


def _limit_memory(memory_bytes: int) -> None:
    try:
        resource = load_module("resource")
    except ImportError:
        # Windows has no memory limit for a process, but the timeout still applies.
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def parse_file(job: ParseJob) -> ParsedFile:
    """Parse a file and return its chunks, figures, and the text used to derive its metadata.

    Raises:
        BadDocumentError: the file cannot be read; the error includes the reason and a hint for the owner.
    """
    with job.source.open("rb") as file:
        file_format = check_content(job.filename, file.read(MAGIC_BYTES))
    pages = None if job.page_texts is None else ServicePages(job.page_texts)
    tables = TableFile(job.tables, job.filename) if job.tables else None
    budget_s, languages = job.recognition_budget_s, job.languages
    with open_context(job.figures, job.max_figures, budget_s, pages, tables, languages=languages) as context:
        document = _parse(file_format, job, context)
    elements = document.elements
    _check_size(elements)
    if job.reading is not None:
        _write_reading(job.reading, document)
    count_tokens = token_counter(job.tokenizer_path)
    chunks = _chunks(elements, job, count_tokens)
    stored_tables = tables.close(job.hints) if tables else ()
    warnings = (*document.warnings, *(tables.notes if tables else ()))
    for table in stored_tables:
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
        date=document.date,
        first_heading=_first_heading(elements),
        opening=_opening(elements),
        unread_pages=tuple(pages.unread) if pages is not None else (),
        unreadable_pages=document.unreadable_pages,
        warnings=_bounded(warnings),
    )


def _check_size(elements: Sequence[Element]) -> None:
    """Raise BadDocumentError if a document has too many elements."""
    if len(elements) > MAX_PIECES:
        raise BadDocumentError(
            f"The document has {len(elements):,} paragraphs, tables and figures; the limit is "
            f"{MAX_PIECES:,}.",
            "Split the file.",
            failure="too_large",
        )


def _write_reading(folder: Path, document: ParsedDocument) -> None:
    outline, parts = encode(document.elements, document.page_count)
    (folder / PARTS_FILE).write_bytes(parts)
    (folder / OUTLINE_FILE).write_text(outline.model_dump_json(), encoding="utf-8")


def _chunks(elements: Sequence[Element], job: ParseJob, count_tokens: TokenCounter) -> list[Chunk]:
    """Split the elements of a document into chunks, and check their number.

    Raises:
        BadDocumentError: the document has more than `max_blocks` chunks.
    """
    chunks = chunk_elements(elements, job.max_tokens, count_tokens)
    if len(chunks) > job.max_blocks:
        raise BadDocumentError(
            f"The document has {len(chunks):,} blocks; the limit is {job.max_blocks:,}.",
            "Split the file, or remove tables that don't need to be searched.",
            failure="too_large",
        )
    return chunks


def _opening(elements: Sequence[Element]) -> str:
    """Return the beginning of the text, with headings in Markdown."""
    marked = (
        f"{'#' * (one.level or 1)} {one.text}" if one.kind == "heading" else one.text
        for one in elements[:OPENING_CHARS]
    )
    return "\n\n".join(marked)[:OPENING_CHARS].strip()


def _parse(file_format: Format, job: ParseJob, context: ParseContext) -> ParsedDocument:
    """Convert the service's layout if it covers all pages. Otherwise run the built-in parser and add a
    warning.
    """
    parse: Parser = resolve_name(file_format.parser)
    if job.layout is None:
        return parse(job.source, context)
    parse_layout: LayoutParser = resolve_name(file_format.layout_parser)
    document = parse_layout(job.source, job.layout, context)
    if document is not None:
        return document
    pages = "page was" if job.layout.page_count == 1 else "pages were"
    read = f"Only {job.layout.page_count} {pages} read by {job.layout.service}"
    document = parse(job.source, context)
    warnings = (f"{read}: the built-in parser read the file.", *document.warnings)
    return document.model_copy(update={"warnings": warnings})


def _first_heading(elements: Sequence[Element]) -> str | None:
    """Return the text of the first heading with the highest level, or None. In a document with pages, only
    headings on the first two pages count. Default names such as "Sheet1" never count.
    """
    headings = [
        one
        for one in elements
        if one.kind == "heading" and (one.page_number or 1) <= 2 and not is_default_name(one.text)
    ]
    return min(headings, key=lambda heading: heading.level or 1).text if headings else None


def _bounded(warnings: Sequence[str]) -> tuple[str, ...]:
    texts = [
        text if len(text) <= MAX_WARNING_CHARS else f"{text[:MAX_WARNING_CHARS]} …"
        for text in warnings[:MAX_WARNINGS]
    ]
    more = len(warnings) - len(texts)
    return (*texts, f"{more} more warnings.") if more else tuple(texts)
