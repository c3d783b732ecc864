"""The record manager: which blocks are new, moved, kept or gone. Pure: chunks and known ids in, lists out."""

from collections import Counter
from collections.abc import Mapping, Sequence

from shared.documents.figure_store import CAPTION_VERSION
from shared.documents.ids import block_id, figure_block_id
from shared.documents.models import Block, Caption, Chunk, Figure
from shared.ingestion.chunking import embedded_text
from shared.ingestion.figures import figure_text
from shared.ingestion.models import BlockChanges
from shared.platform.hashing import digest
from shared.platform.names import FIGURES


def make_blocks(doc_id: str, chunks: Sequence[Chunk], embedding_model: str) -> list[Block]:
    """The document's text blocks in order, with their ids and hashes."""
    seen: Counter[str] = Counter()
    blocks = []
    for chunk in chunks:
        text = embedded_text(chunk)
        blocks.append(_block(doc_id, chunk, block_id(doc_id, text, embedding_model, seen[text])))
        seen[text] += 1
    return blocks


def make_figure_blocks(
    doc_id: str, figures: Sequence[Figure], captions: Mapping[str, Caption], embedding_model: str
) -> list[Block]:
    """The document's image blocks in order. One without a caption yet has the id that it gets from the model.

    A figure that a rule described has another id: the next version of the document is a new try at the model.

    Args:
        captions: by the picture's key, as far as they are known.
    """
    return [_figure_block(doc_id, figure, captions.get(figure.key), embedding_model) for figure in figures]


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


def _figure_block(doc_id: str, figure: Figure, caption: Caption | None, embedding_model: str) -> Block:
    captioned_by = CAPTION_VERSION if caption is None or caption.by_model else "rule"
    return Block(
        block_id=figure_block_id(doc_id, figure.key, embedding_model, captioned_by),
        doc_id=doc_id,
        block_type="image",
        page_number=figure.page_number,
        heading_path=figure.heading_path,
        image_url=f"{FIGURES}/{doc_id}/{figure.key}.png",
        image_caption=figure_text(figure, caption.text) if caption is not None else None,
        content_hash=digest(str(figure.page_number), figure.heading_path, figure.key)[:32],
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
