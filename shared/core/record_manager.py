"""The record manager: which blocks are new, moved, kept or gone. Pure: chunks and known ids in, lists out."""

from collections import Counter
from collections.abc import Mapping, Sequence

from shared.core.chunking import embedded_text
from shared.core.document_ids import block_id, digest
from shared.models.blocks import Block, Chunk
from shared.models.ingestion import BlockChanges


def make_blocks(doc_id: str, chunks: Sequence[Chunk], embedding_model: str) -> list[Block]:
    """The document's blocks in order, with their ids and hashes."""
    seen: Counter[str] = Counter()
    blocks = []
    for chunk in chunks:
        text = embedded_text(chunk)
        blocks.append(_block(doc_id, chunk, block_id(doc_id, text, embedding_model, seen[text])))
        seen[text] += 1
    return blocks


def plan_changes(blocks: Sequence[Block], indexed: Mapping[str, str]) -> BlockChanges:
    """Compare a document's blocks with the rows of the index.

    Args:
        indexed: block_id -> content_hash of every row that the document has in the index.
    """
    new: list[int] = []
    moved: list[int] = []
    kept: list[int] = []
    for position, block in enumerate(blocks):
        found = indexed.get(block.block_id)
        target = new if found is None else kept if found == block.content_hash else moved
        target.append(position)
    wanted = {block.block_id for block in blocks}
    return BlockChanges(
        new=tuple(new),
        moved=tuple(moved),
        kept=tuple(kept),
        gone=tuple(sorted(key for key in indexed if key not in wanted)),
    )


def _block(doc_id: str, chunk: Chunk, key: str) -> Block:
    place = (str(chunk.page_number), str(chunk.start_seconds), chunk.heading_path)
    return Block(
        block_id=key,
        doc_id=doc_id,
        page_number=chunk.page_number,
        start_seconds=chunk.start_seconds,
        heading_path=chunk.heading_path,
        content=chunk.text,
        content_hash=digest(*place, chunk.text)[:32],
    )
