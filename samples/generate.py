"""`python -m samples.generate FOLDER`: write the sample documents, with identical bytes on every run."""

import argparse
from pathlib import Path

from samples.documents.annual_reports import ANNUAL_REPORT_2023, ANNUAL_REPORT_2024
from samples.documents.heron_manual import HERON_MANUAL
from samples.documents.installation_guide import INSTALLATION_GUIDE
from samples.documents.leave_policy import LEAVE_POLICY
from samples.documents.price_list import PRICE_LIST
from samples.documents.wartungsplan import WARTUNGSPLAN
from samples.pdf_writer import write_pdf

TEXTS = Path(__file__).parent / "texts"
PDF_DOCUMENTS = {
    "heron-400-manual.pdf": HERON_MANUAL,
    "heron-400-installation-guide.pdf": INSTALLATION_GUIDE,
    "annual-report-2023.pdf": ANNUAL_REPORT_2023,
    "annual-report-2024.pdf": ANNUAL_REPORT_2024,
    "leave-policy.pdf": LEAVE_POLICY,
    "price-list-2025.pdf": PRICE_LIST,
    "wartungsplan-kestrel-120.pdf": WARTUNGSPLAN,
}


def generate(folder: Path) -> list[Path]:
    """Write all samples to the folder and return their paths, sorted by name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in PDF_DOCUMENTS.items():
        (folder / name).write_bytes(write_pdf(document))
    for text in TEXTS.iterdir():
        (folder / text.name).write_bytes(text.read_bytes())
    names = [*PDF_DOCUMENTS, *(text.name for text in TEXTS.iterdir())]
    return [folder / name for name in sorted(names)]


def main() -> None:
    """Write the samples to the folder given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    for path in generate(parser.parse_args().folder):
        print(path)


if __name__ == "__main__":
    main()
