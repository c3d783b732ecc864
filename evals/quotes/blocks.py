"""Makes the blocks of data sets as in the app: PDFs are parsed and chunked, and passages are used
unchanged.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shared.ingestion.chunking import chunk_elements
from shared.ingestion.parsers.pdf import parse_pdf
from shared.platform.tokens import estimate_tokens

SETS = ("contoso_hr", "financebench", "squadshifts_wiki")
_MAX_BLOCK_TOKENS = 500
# Number of files used of a set, smallest first. They have about 500 blocks.
_FILES = 3
_PASSAGES = 500


@dataclass(frozen=True)
class SourceBlock:
    """The text of a block with the name of its document."""

    document: str
    text: str


def blocks_of(data_set: Path) -> list[SourceBlock]:
    """Return the blocks of a set's smallest documents, or its first passages.

    Raises:
        FileNotFoundError: the set doesn't exist.
    """
    passages = data_set / "passages.jsonl"
    if passages.exists():
        return list(_passages(passages))
    paths = sorted((data_set / "docs").glob("*.pdf"), key=os.path.getsize)
    if not paths:
        raise FileNotFoundError(f"{data_set} contains neither passages nor PDFs.")
    return [block for path in paths[:_FILES] for block in _pdf_blocks(path)]


def _passages(path: Path) -> Iterator[SourceBlock]:
    with path.open(encoding="utf-8") as lines:
        for _, line in zip(range(_PASSAGES), lines, strict=False):
            passage = json.loads(line)
            yield SourceBlock(passage["title"], passage["text"])


def _pdf_blocks(path: Path) -> Iterator[SourceBlock]:
    for chunk in chunk_elements(parse_pdf(path).elements, _MAX_BLOCK_TOKENS, estimate_tokens):
        yield SourceBlock(path.name, chunk.text)
