"""The files to measure: PDFs of a folder, or generated PDFs, so that the benchmark runs without any data."""

import random
from pathlib import Path

from fpdf import FPDF

_FILES = 6
_PAGES = 60
# Every fourth page contains a table.
_TABLE_EVERY = 4
_WORDS = (
    "pump valve pressure bearing shaft seal housing flow inlet outlet motor coupling vibration alarm "
    "operator inspection interval lubricant temperature gauge limit replace tighten measure record while"
).split()


def find_files(folder: Path) -> list[Path]:
    """Return all PDFs below a folder, smallest first.

    Raises:
        ValueError: if there is none.
    """
    files = [path for path in folder.rglob("*") if path.suffix.lower() == ".pdf" and path.is_file()]
    if not files:
        raise ValueError(f"There is no PDF in {folder}.")
    return sorted(files, key=lambda path: (path.stat().st_size, path.name))


def write_files(folder: Path) -> list[Path]:
    """Write generated manuals with headings, prose and tables, and return their paths. The files are the same
    in every run.

    They are simpler than real files: pypdf is many times faster on them than on filings.
    """
    files = []
    for number in range(_FILES):
        chance = random.Random(number)
        pdf = FPDF()
        for page in range(_PAGES):
            _write_page(pdf, page, chance)
        path = folder / f"manual-{number}.pdf"
        pdf.output(str(path))
        files.append(path)
    return files


def _write_page(pdf: FPDF, page: int, chance: random.Random) -> None:
    pdf.add_page()
    pdf.set_font("Helvetica", "B", 16)
    heading = " ".join(chance.choices(_WORDS, k=3)).title()
    pdf.cell(0, 12, f"{page + 1} {heading}", new_x="LMARGIN", new_y="NEXT")
    pdf.set_font("Helvetica", "", 10)
    for _ in range(4):
        pdf.multi_cell(0, 5, _prose(chance), new_x="LMARGIN", new_y="NEXT")
        pdf.ln(3)
    if page % _TABLE_EVERY:
        return
    with pdf.table() as table:
        for _ in range(8):
            row = table.row()
            for _ in range(4):
                row.cell(f"{chance.choice(_WORDS)} {chance.randrange(1000)}")


def _prose(chance: random.Random) -> str:
    sentences = [" ".join(chance.choices(_WORDS, k=chance.randrange(8, 18))) for _ in range(5)]
    return " ".join(f"{sentence.capitalize()}." for sentence in sentences)
