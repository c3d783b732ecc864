"""Which blocks are new, moved, kept or gone when a document changes."""

from shared.documents.models import Block, Chunk, Figure
from shared.ingestion.indexing import make_blocks, plan_changes
from shared.ingestion.models import ParsedFile


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


def test_figures_have_their_place_among_the_text() -> None:
    parsed = ParsedFile(
        chunks=(Chunk(text="before", place=0), Chunk(text="after", place=2), Chunk(text="more", place=2)),
        figures=(Figure(key="f", place=1, width_px=1, height_px=1),),
    )
    made = make_blocks("d1", parsed, {}, "m")
    in_order = sorted(made, key=lambda block: block.ordinal)
    assert [block.content or "figure" for block in in_order] == ["before", "figure", "after", "more"]
    assert [block.ordinal for block in in_order] == [0, 1, 2, 3]


def test_a_block_with_another_ordinal_is_moved_and_not_embedded_again() -> None:
    before, after = blocks(chunk("a")), blocks(chunk("new"), chunk("a"))
    changes = plan_changes(after, indexed(before))
    assert (changes.new, changes.moved, changes.gone) == ((0,), (1,), ())
