"""The record manager: a document's blocks, and which of them are new, moved, kept or gone. No I/O."""

from collections import Counter
from collections.abc import Mapping, Sequence

from shared.documents.figure_store import CAPTION_VERSION
from shared.documents.ids import block_id, figure_block_id
from shared.documents.models import Block, Caption, Figure
from shared.ingestion.chunking import embedded_text
from shared.ingestion.figures import figure_text
from shared.ingestion.models import BlockChanges, ParsedFile
from shared.platform.hashing import digest
from shared.platform.names import FIGURES


def make_blocks(
    doc_id: str, parsed: ParsedFile, captions: Mapping[str, Caption], embedding_model: str
) -> list[Block]:
    """The document's text blocks in order, with their ids and hashes, then its image blocks.

    A figure without a caption yet has the id that it gets from the model. One that a rule described has
    another id: the next version of the document is a new try at the model.

    Args:
        captions: by the picture's key, as far as they are known.
    """
    seen: Counter[str] = Counter()
    blocks = []
    for chunk in parsed.chunks:
        text = embedded_text(chunk)
        position = (str(chunk.page_number), str(chunk.start_seconds), chunk.heading_path)
        blocks.append(
            Block(
                block_id=block_id(doc_id, text, embedding_model, seen[text]),
                doc_id=doc_id,
                page_number=chunk.page_number,
                start_seconds=chunk.start_seconds,
                heading_path=chunk.heading_path,
                content=chunk.text,
                content_hash=digest(*position, chunk.text)[:32],
            )
        )
        seen[text] += 1
    figures = (
        _figure_block(doc_id, figure, captions.get(figure.key), embedding_model) for figure in parsed.figures
    )
    return [*blocks, *figures]


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
