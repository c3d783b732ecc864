"""Which blocks are new, moved, kept or gone when a document changes."""

from shared.documents.models import Block, Chunk
from shared.ingestion.models import ParsedFile
from shared.ingestion.record_manager import make_blocks, plan_changes


def chunk(text: str, page: int = 1, path: str = "Safety") -> Chunk:
    return Chunk(text=text, page_number=page, heading_path=path)


def indexed(blocks: list[Block]) -> dict[str, str]:
    return {block.block_id: block.content_hash for block in blocks}


def blocks(*chunks: Chunk, model: str = "m") -> list[Block]:
    return make_blocks("d1", ParsedFile(chunks=chunks), {}, model)


def test_the_same_chunks_need_nothing() -> None:
    before = blocks(chunk("a"), chunk("b"))
    changes = plan_changes(before, indexed(before))
    assert (changes.new, changes.moved, changes.kept, changes.gone) == ((), (), (0, 1), ())


def test_one_changed_chunk_is_one_new_block_and_one_gone() -> None:
    before, after = blocks(chunk("a"), chunk("b")), blocks(chunk("a"), chunk("c"))
    changes = plan_changes(after, indexed(before))
    assert (changes.new, changes.kept, changes.gone) == ((1,), (0,), (before[1].block_id,))


def test_a_chunk_on_another_page_is_moved_and_not_embedded_again() -> None:
    before, after = blocks(chunk("a"), chunk("b")), blocks(chunk("a"), chunk("new"), chunk("b", page=2))
    changes = plan_changes(after, indexed(before))
    assert (changes.new, changes.moved, changes.kept, changes.gone) == ((1,), (2,), (0,), ())


def test_equal_texts_are_told_apart_by_their_order() -> None:
    ids = [block.block_id for block in blocks(chunk("a"), chunk("a"), chunk("a"))]
    assert len(set(ids)) == 3


def test_another_embedding_model_makes_every_block_new() -> None:
    before, after = blocks(chunk("a")), blocks(chunk("a"), model="other")
    assert plan_changes(after, indexed(before)).new == (0,)


def test_another_heading_makes_a_new_block_for_it_is_embedded_too() -> None:
    before, after = blocks(chunk("a")), blocks(chunk("a", path="Care"))
    assert plan_changes(after, indexed(before)).new == (0,)
