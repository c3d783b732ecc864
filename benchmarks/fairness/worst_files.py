"""Files that are expensive to ingest: a PDF with very many pages, files that are slow to parse, and many
small files.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from fpdf import FPDF

_WORDS = (
    "pump valve pressure bearing shaft seal housing flow inlet outlet motor coupling vibration alarm "
    "operator inspection interval lubricant temperature gauge limit replace tighten measure record while"
).split()
# Number of words in about 100 KB of text, which is too long for the fast path of short texts.
_LONG_WORDS = 15_000
# Number of ruled lines per page. pdfplumber needs 60 to 125 ms for such a page.
_SLOW_TABLE_ROWS = 400


@dataclass(frozen=True)
class WorstFile:
    """A file to upload."""

    name: str
    content: bytes


def worst_files(pages: int, files: int) -> list[WorstFile]:
    """Return a PDF with `pages` pages, followed by `files` other expensive files of alternating kinds. Every
    run gets the same files.
    """
    return [WorstFile("large.pdf", _large_pdf(pages)), *(_other(number) for number in range(files))]


def _other(number: int) -> WorstFile:
    chance = random.Random(number)
    kind = number % 4
    if kind == 0:
        return WorstFile(f"slow-{number}.pdf", _slow_pdf(chance))
    if kind == 1:
        return WorstFile(f"long-{number}.md", _prose(chance, _LONG_WORDS).encode())
    return WorstFile(f"note-{number}.txt", _prose(chance, 60).encode())


def _large_pdf(pages: int) -> bytes:
    chance = random.Random(pages)
    pdf = FPDF()
    pdf.set_font("Helvetica", size=10)
    for _ in range(pages):
        pdf.add_page()
        pdf.multi_cell(0, 5, _prose(chance, 150))
    return bytes(pdf.output())


def _slow_pdf(chance: random.Random) -> bytes:
    pdf = FPDF()
    pdf.set_font("Helvetica", size=8)
    pdf.add_page()
    with pdf.table() as table:
        for _ in range(_SLOW_TABLE_ROWS):
            row = table.row()
            for _ in range(5):
                row.cell(f"{chance.choice(_WORDS)} {chance.randrange(1000)}")
    return bytes(pdf.output())


def _prose(chance: random.Random, words: int) -> str:
    return " ".join(_sentences(chance, words))


def _sentences(chance: random.Random, words: int) -> Iterator[str]:
    for _ in range(0, words, 15):
        yield " ".join(chance.choices(_WORDS, k=15)).capitalize() + "."
