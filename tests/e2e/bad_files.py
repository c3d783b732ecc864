"""Damaged, hostile, huge or mislabelled files, generated on demand."""

import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass

from fpdf import FPDF

from tests.unit.ingestion.hostile_files import docx_of, docx_with_macros, png_of


@dataclass(frozen=True)
class BadFile:
    """A bad file, with the expected outcome of its ingestion.

    Attributes:
        ends_as: the expected status, `ready` or `failed`.
        says: words in the reason or the warnings. If empty, no warning is expected.
    """

    name: str
    make: Callable[[], bytes]
    ends_as: str
    says: str = ""


def pdf_of_pages(count: int, text: str, on_page: int = 1, password: str | None = None) -> bytes:
    """Return a PDF with `count` pages, all blank except page `on_page`, which contains the text."""
    pdf = FPDF()
    pdf.set_font("Helvetica", size=12)
    for page in range(1, count + 1):
        pdf.add_page()
        if page == on_page:
            pdf.cell(0, 10, text)
    if password:
        pdf.set_encryption(owner_password=password, user_password=password)
    return bytes(pdf.output())


def zip_bomb() -> bytes:
    """Return a Word file of half a megabyte that unpacks to half a gigabyte."""
    buffer = io.BytesIO(docx_of("Before the bomb."))
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as package:
        package.writestr("word/media/bomb.bin", bytes(512 << 20))
    return buffer.getvalue()


BAD_FILES = (
    BadFile("empty.pdf", lambda: b"", "failed", "empty"),
    BadFile("truncated.pdf", lambda: pdf_of_pages(3, "Cut off.")[:400], "failed", "damaged or incomplete"),
    BadFile("truncated.docx", lambda: docx_of("Cut off.")[:9000], "failed", "damaged or incomplete"),
    BadFile("encrypted.pdf", lambda: pdf_of_pages(1, "Secret.", password="x"), "failed", "needs a password"),
    BadFile("a-word-file.pdf", lambda: docx_of("No PDF."), "failed", "The suffix says PDF"),
    BadFile("a-pdf.txt", lambda: pdf_of_pages(1, "No text."), "failed", "the content is a PDF"),
    BadFile("bomb.docx", zip_bomb, "failed", "decompression bomb"),
    BadFile("thousands.pdf", lambda: pdf_of_pages(2000, "Here it is.", on_page=1500), "ready"),
    BadFile("large-picture.png", lambda: png_of(20_000, 20_000), "failed", "pixels"),
    BadFile("no-times.vtt", lambda: b"WEBVTT\n\nxx --> yy\nlost\n", "failed", "malformed"),
    BadFile(
        "half.vtt",
        lambda: b"WEBVTT\n\nxx --> yy\nlost\n\n00:01.000 --> 00:02.000\nkept\n",
        "ready",
        "1 malformed",
    ),
    BadFile("macros.docm", lambda: docx_with_macros("Read me."), "ready", "macros"),
    BadFile("quo\"ted 'name' & ünïcode/слой ﬀ/日本 #1?%41.md", lambda: b"A strange name.", "ready"),
    BadFile("no-suffix", lambda: b"words", "failed", "without a suffix"),
)
