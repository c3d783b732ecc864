"""Word files and pictures that a parser must handle with care, generated on demand."""

import io
import struct
import zipfile
import zlib

from docx import Document

_MAIN = "openxmlformats-officedocument.wordprocessingml.document.main"
_MACRO_MAIN = "ms-word.document.macroEnabled.main"


def docx_of(text: str) -> bytes:
    """Return a Word file with one paragraph."""
    document = Document()
    document.add_paragraph(text)
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def docx_with_macros(text: str) -> bytes:
    """Return a Word file with one paragraph and a macro part, and with the content type of such files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(docx_of(text))) as plain, zipfile.ZipFile(buffer, "w") as package:
        for name in plain.namelist():
            content = plain.read(name)
            package.writestr(name, content.replace(_MAIN.encode(), _MACRO_MAIN.encode()))
        package.writestr("word/vbaProject.bin", b"Sub AutoOpen()")
    return buffer.getvalue()


def png_of(width: int, height: int) -> bytes:
    """Return a black picture with one bit per pixel. The file has only a few kilobytes, whatever the size of
    the picture.
    """
    packer = zlib.compressobj()
    row = bytes(1 + (width + 7) // 8)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in ((b"IHDR", header), (b"IDAT", data), (b"IEND", b""))
    )
