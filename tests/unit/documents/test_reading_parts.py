"""How a document is cut for reading."""

import pytest

from shared.documents.models import Element
from shared.documents.page_views import PART_CHARS, element_at, page_number_of, part_at, part_starts
from shared.platform.errors import CallerError, NotFoundError


def piece(chars: int, page: int | None = None, kind: str = "paragraph") -> Element:
    return Element.model_validate({"kind": kind, "text": "x" * chars, "page_number": page})


def test_no_part_is_larger_than_it_may_be_unless_one_piece_is() -> None:
    elements = [piece(3000) for _ in range(40)] + [piece(3 * PART_CHARS), piece(10)]
    starts = part_starts(elements)
    ends = [*starts[1:], len(elements)]
    sizes = [sum(len(one.text) for one in elements[a:b]) for a, b in zip(starts, ends, strict=True)]
    assert sum(sizes) == sum(len(one.text) for one in elements)
    assert [size for size in sizes if size > PART_CHARS] == [3 * PART_CHARS]


def test_a_part_that_is_half_full_ends_before_a_heading_and_before_a_page() -> None:
    half = PART_CHARS // 2 + 1
    assert part_starts([piece(half), piece(5, kind="heading"), piece(5)]) == [0, 1]
    assert part_starts([piece(half, 1), piece(5, 2), piece(5, 2)]) == [0, 1]
    assert part_starts([piece(5, 1), piece(5, 2)]) == [0]
    assert part_starts([]) == [0]


def test_a_cursor_leads_to_the_part_that_holds_its_piece() -> None:
    assert [part_at([0, 4, 9], cursor) for cursor in ("", "0", "4", "8", "9", "500")] == [0, 0, 1, 1, 2, 2]
    with pytest.raises(CallerError):
        part_at([0], "x")


def test_a_moment_leads_to_what_is_being_said() -> None:
    said = [Element(kind="paragraph", text="x", start_seconds=second) for second in (0.0, 5.5, 83.2)]
    assert [element_at(said, second) for second in (0, 5, 6, 83.2, 900)] == [0, 0, 1, 2, 2]
    assert element_at([piece(3)], 60) == 0


@pytest.mark.parametrize("text", ["0", "-1", "1.0", "x", "", "٣", "99999999", "1 "])
def test_what_is_no_page_number_is_not_there(text: str) -> None:
    with pytest.raises(NotFoundError):
        page_number_of(text)
