"""One page of a file into a picture, as a job of the worker process; touches no network."""

from pathlib import Path
from typing import Literal

from shared.documents.models import Element, ParsedDocument
from shared.documents.page_models import Reading
from shared.ingestion.chunking import chunk_elements
from shared.ingestion.figures import FigureFolder, figures_of
from shared.ingestion.models import Layout, PageTexts, ParsedFile
from shared.ingestion.parsers.context import PagesElsewhere, Workbench, open_workbench
from shared.ingestion.registry import MAGIC_BYTES, Format, check_content, parse_with, parse_with_layout
from shared.platform.models import Model
from shared.platform.tokens import token_counter

OPENING_CHARS = 6000
MAX_WARNINGS = 20  # a workbook may have thousands of hidden sheets, and all is held in one row of a table
MAX_WARNING_CHARS = 500


class ParseJob(Model):
    """What the worker is asked: read `source`, write a ParsedFile as JSON to `target`.

    Attributes:
        filename: the document's own name; the file at `source` is called otherwise.
        figures: an empty folder for the pictures; None = no figures and no text recognition.
        recognition_budget_s: for all scanned pages and pictures together; 0 = none is read.
        pages_elsewhere: pages without text are read by a service, and not by Tesseract.
        page_texts: what the service read, a PageTexts as JSON; None = nothing yet.
        reading: where the document's pieces go, a Reading as JSON; None = nobody wants them.
        layout: what a parser service found, a Layout as JSON; None = our own parsers find out.
    """

    source: Path
    target: Path
    filename: str
    max_tokens: int
    tokenizer_path: str | None = None
    figures: Path | None = None
    max_figures: int = 0
    recognition_budget_s: float = 0
    pages_elsewhere: bool = False
    page_texts: Path | None = None
    layout: Path | None = None
    reading: Path | None = None


def parse_file(job: ParseJob) -> ParsedFile:
    """The file's chunks, and what its metadata can be made from.

    Raises:
        BadDocumentError: the file cannot be read; the reason and what its owner can do.
    """
    with job.source.open("rb") as file:
        known = check_content(job.filename, file.read(MAGIC_BYTES))
    folder = job.figures or job.target.parent
    max_figures = job.max_figures if job.figures else 0
    with open_workbench(folder, max_figures, job.recognition_budget_s, _read_elsewhere(job)) as bench:
        document = _parse(known, job, bench)
    if job.reading is not None:
        reading = Reading(elements=document.elements, page_count=document.page_count)
        job.reading.write_text(reading.model_dump_json(), encoding="utf-8", errors="replace")
    chunks = chunk_elements(document.elements, job.max_tokens, token_counter(job.tokenizer_path))
    warnings = (*document.warnings, *_left_out(bench.figures))
    if not chunks and not warnings:
        warnings = ("The document holds no text; nothing of it can be found.",)
    return ParsedFile(
        chunks=tuple(chunks),
        figures=tuple(figures_of(document.elements)),
        page_count=document.page_count,
        title=document.title,
        author=document.author,
        first_heading=_first_heading(document),
        opening=_opening(document.elements),
        unread_pages=bench.unread_pages,
        warnings=_bounded(warnings),
    )


def _read_elsewhere(job: ParseJob) -> PagesElsewhere | None:
    if not job.pages_elsewhere:
        return None
    if job.page_texts is None:
        return PagesElsewhere({})
    return PagesElsewhere(PageTexts.model_validate_json(job.page_texts.read_bytes()).texts)


def _parse(known: Format, job: ParseJob, bench: Workbench) -> ParsedDocument:
    """By the layout where there is one, unless the service read fewer pages than the file has."""
    if job.layout is None:
        return parse_with(known, job.source, bench)
    layout = Layout.model_validate_json(job.layout.read_bytes())
    document = parse_with_layout(known, job.source, layout, bench)
    if document is not None:
        return document
    pages = "page was" if layout.page_count == 1 else "pages were"
    note = f"Only {layout.page_count} {pages} read by {layout.service}: the built-in parser read the file."
    document = parse_with(known, job.source, bench)
    return document.model_copy(update={"warnings": (note, *document.warnings)})


def _bounded(warnings: tuple[str, ...]) -> tuple[str, ...]:
    told = tuple(
        text if len(text) <= MAX_WARNING_CHARS else f"{text[:MAX_WARNING_CHARS]} …"
        for text in warnings[:MAX_WARNINGS]
    )
    more = len(warnings) - len(told)
    return (*told, f"{more} more warnings.") if more else told


def _left_out(figures: FigureFolder) -> tuple[str, ...]:
    if not figures.left_out or not figures.limit:
        return ()
    return (f"Only the first {figures.limit} figures were kept (MAX_FIGURES).",)


def _first_heading(document: ParsedDocument) -> str | None:
    """The first of the highest level; on paged documents it stands on the first two pages."""
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


class RenderJob(Model):
    """What the worker is asked: draw a page of the PDF at `source` into `picture`, a PNG, and write what is
    known of it to `target`, a PageSheet as JSON."""

    kind: Literal["render"] = "render"
    source: Path
    target: Path
    picture: Path
    page_number: int


def render(job: RenderJob) -> None:
    """Do it.

    Raises:
        BadDocumentError: the page, or the file, cannot be read.
        NotFoundError: the file has no such page.
    """
    from shared.ingestion.parsers.pdf_page import render_page

    sheet = render_page(job.source, job.page_number, job.picture)
    job.target.write_text(sheet.model_dump_json(), encoding="utf-8", errors="replace")
