"""`python -m benchmarks.ingestion [--data FOLDER] --out report.json`: measure the pages ingested per second.

Parsing and chunking are compared with a baseline, pypdf and windows of 1,000 characters, in the same run.
Embedding and indexing are measured separately at the local servers, then everything through the stack.
"""

import argparse
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.ingestion import serving
from benchmarks.ingestion.corpus import find_files, write_files
from benchmarks.ingestion.parsing import ParsedPdf, parse_all, peak_of_largest, tokenizer_path


@dataclass(frozen=True)
class ParseSpeed:
    """The speed of parsing and chunking, in pages per second of wall time.

    Attributes:
        baseline_per_s, ratio: for files that both parsed; None without a baseline.
        largest_peak_mb: peak memory of a fresh worker that parses the largest file.
    """

    files: int
    pages: int
    blocks: int
    parse_per_s: float
    baseline_per_s: float | None
    ratio: float | None
    largest_peak_mb: float | None


@dataclass(frozen=True)
class ServedSpeed:
    """The speed of embedding, indexing and the whole ingestion, in pages per second of wall time.

    Attributes:
        pages: pages sent through the stack, limited by `--whole-pages`.
        peak_mb: peak memory of the host and its workers.
        embedding_share: time for embedding divided by the time for the whole ingestion.
    """

    pages: int
    embed_per_s: float
    index_per_s: float
    whole_per_s: float
    peak_mb: float
    embedding_share: float


def main() -> None:
    arguments = _arguments()
    with TemporaryDirectory(prefix="groundwork-benchmark-") as name:
        folder = Path(name)
        files = find_files(arguments.data) if arguments.data else write_files(folder)
        parsed = parse_all(files, folder)
        parse = _parse_speed(parsed, peak_of_largest(files, folder))
        print(json.dumps(asdict(parse), indent=1), flush=True)
        served = None if arguments.parse_only else _serve(parsed, folder / "stack", arguments.whole_pages)
    if served is not None:
        print(json.dumps(asdict(served), indent=1))
    if arguments.out:
        results = {
            "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
            "tokenizer": "MiniLM" if tokenizer_path() else "3.6 characters a token",
            "parse": asdict(parse),
            "served": None if served is None else asdict(served),
            "files": [_row(one) for one in parsed],
        }
        arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def _parse_speed(parsed: Sequence[ParsedPdf], largest_peak_mb: float | None) -> ParseSpeed:
    both = [one for one in parsed if one.baseline_s is not None]
    pages = sum(one.pages for one in parsed)
    theirs = _speed(sum(one.pages for one in both), sum(one.baseline_s or 0.0 for one in both))
    ours = _speed(sum(one.pages for one in both), sum(one.seconds for one in both))
    return ParseSpeed(
        files=len(parsed),
        pages=pages,
        blocks=sum(len(one.texts) for one in parsed),
        parse_per_s=_speed(pages, sum(one.seconds for one in parsed)),
        baseline_per_s=theirs if both else None,
        ratio=round(ours / theirs, 2) if both else None,
        largest_peak_mb=largest_peak_mb,
    )


def _serve(parsed: Sequence[ParsedPdf], folder: Path, most_pages: int) -> ServedSpeed:
    """Measure the steps after parsing with the smallest files, up to `most_pages` pages in total but at least
    one file.
    """
    sums = accumulate(one.pages for one in parsed)
    chosen = [one for one, total in zip(parsed, sums, strict=True) if total <= most_pages] or [parsed[0]]
    texts = [text for one in chosen for text in one.texts]
    pages = sum(one.pages for one in chosen)
    with serving.running_stack(folder) as stack:
        embed_s = serving.embed(stack, texts)
        index_s = serving.index(stack, texts)
        whole_s, peak_mb = serving.ingest(stack, [one.path for one in chosen])
    return ServedSpeed(
        pages=pages,
        embed_per_s=_speed(pages, embed_s),
        index_per_s=_speed(pages, index_s),
        whole_per_s=_speed(pages, whole_s),
        peak_mb=peak_mb,
        embedding_share=round(embed_s / whole_s, 2),
    )


def _row(one: ParsedPdf) -> dict[str, str | float | int | None]:
    return {
        "file": one.path.name,
        "pages": one.pages,
        "blocks": len(one.texts),
        "seconds": round(one.seconds, 3),
        "baseline_s": None if one.baseline_s is None else round(one.baseline_s, 3),
    }


def _speed(pages: int, seconds: float) -> float:
    return round(pages / seconds, 1) if seconds else 0.0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ingestion", description=__doc__)
    parser.add_argument("--data", type=Path, help="Folder with the PDFs to ingest (default: generated PDFs).")
    parser.add_argument("--out", type=Path, help="JSON file to which the report is written.")
    parser.add_argument(
        "--whole-pages", type=int, default=300, help="Maximum number of pages that the whole stack ingests."
    )
    parser.add_argument("--parse-only", action="store_true", help="Measure only parsing and chunking.")
    return parser.parse_args()


if __name__ == "__main__":
    main()
