"""What aligning a quotation takes: `python -m benchmarks.quotes`, in blocks of 500 tokens of our own pages.

Each quotation is looked for in a block that was not read before, so reading the block is included. Aim: 5 ms
at the 95th percentile.
"""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from shared.evidence.alignment import Block, align
from shared.ingestion.chunking import chunk_elements
from shared.ingestion.parsers.markdown import parse_markdown
from shared.platform.tokens import estimate_tokens

_TOKENS = 500
_DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    """Measure and print."""
    spent_ms = sorted(_spent_ms())
    p95 = statistics.quantiles(spent_ms, n=20)[-1]
    print(f"{len(spent_ms)} quotations: p50 {statistics.median(spent_ms):.2f} ms, p95 {p95:.2f} ms")


def _spent_ms() -> Iterator[float]:
    for page in sorted(_DOCS.glob("*.md")):
        for chunk in chunk_elements(parse_markdown(page).elements, _TOKENS, estimate_tokens):
            if estimate_tokens([chunk.text])[0] < 0.8 * _TOKENS:
                continue
            for quote in _quotes(chunk.text):
                began = time.perf_counter()
                align(quote, Block(chunk.text))
                yield 1000 * (time.perf_counter() - began)


def _quotes(text: str) -> Iterator[str]:
    """Words of the block as they are, with a gap, and with a word that is not there."""
    words = text.split()
    middle = len(words) // 2
    yield " ".join(words[middle : middle + 25])
    yield " ".join((*words[5:20], "…", *words[middle : middle + 15]))
    yield " ".join((*words[middle : middle + 20], "absent"))


if __name__ == "__main__":
    main()
