"""Files that are damaged, hostile, enormous or mislabelled, made when they are needed."""

import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from docx import Document
from fpdf import FPDF

_MAIN = "openxmlformats-officedocument.wordprocessingml.document.main"
_MACRO_MAIN = "ms-word.document.macroEnabled.main"


@dataclass(frozen=True)
class BadFile:
    """One row of the table.

    Attributes:
        ends_as: `ready`, or `failed`.
        says: words of the reason, or of the warnings; empty = no warning at all.
    """

    name: str
    make: Callable[[], bytes]
    ends_as: str
    says: str = ""


def pdf_of_pages(count: int, text: str, on_page: int = 1, password: str | None = None) -> bytes:
    """A PDF whose pages are blank but for one."""
    pdf = FPDF()
    pdf.set_font("Helvetica", size=12)
    for page in range(1, count + 1):
        pdf.add_page()
        if page == on_page:
            pdf.cell(0, 10, text)
    if password:
        pdf.set_encryption(owner_password=password, user_password=password)
    return bytes(pdf.output())


def docx_of(text: str) -> bytes:
    """A Word file of one paragraph."""
    document = Document()
    document.add_paragraph(text)
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def docx_with_macros(text: str) -> bytes:
    """The same, with a part for macros and the type of a file that has some."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(docx_of(text))) as plain, zipfile.ZipFile(buffer, "w") as package:
        for name in plain.namelist():
            content = plain.read(name)
            package.writestr(name, content.replace(_MAIN.encode(), _MACRO_MAIN.encode()))
        package.writestr("word/vbaProject.bin", b"Sub AutoOpen()")
    return buffer.getvalue()


def zip_bomb() -> bytes:
    """A Word file of half a megabyte that unpacks to half a gigabyte."""
    buffer = io.BytesIO(docx_of("Before the bomb."))
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as package:
        package.writestr("word/media/bomb.bin", bytes(512 << 20))
    return buffer.getvalue()


def png_of(width: int, height: int) -> bytes:
    """A black picture of one bit a pixel: a few kilobytes, whatever its size."""
    packer = zlib.compressobj()
    row = bytes(1 + (width + 7) // 8)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in ((b"IHDR", header), (b"IDAT", data), (b"IEND", b""))
    )


BAD_FILES = (
    BadFile("empty.pdf", lambda: b"", "failed", "empty"),
    BadFile("truncated.pdf", lambda: pdf_of_pages(3, "Cut off.")[:400], "failed", "damaged or incomplete"),
    BadFile("truncated.docx", lambda: docx_of("Cut off.")[:9000], "failed", "damaged or incomplete"),
    BadFile("encrypted.pdf", lambda: pdf_of_pages(1, "Secret.", password="x"), "failed", "needs a password"),
    BadFile("a-word-file.pdf", lambda: docx_of("No PDF."), "failed", "The suffix says PDF"),
    BadFile("a-pdf.txt", lambda: pdf_of_pages(1, "No text."), "failed", "the content is a PDF"),
    BadFile("bomb.docx", zip_bomb, "failed", "decompression bomb"),
    BadFile("thousands.pdf", lambda: pdf_of_pages(5000, "Here it is.", on_page=2500), "ready"),
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
