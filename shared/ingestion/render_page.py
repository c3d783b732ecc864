"""One page of a file into a picture, as a job of the worker process; touches no network."""

from pathlib import Path
from typing import Literal

from shared.models.base import Model


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
