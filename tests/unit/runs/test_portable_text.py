"""Tests for streams, which hold back an incomplete image so that its URL can be replaced."""

import pytest

from shared.runs.portable_text import split_at_open_picture

PICTURE = "![Figure 1: a (small) pump](/api/documents/d1/figures/a.png)"
TEXT = f"It runs! {PICTURE} (Source: a.pdf, S. 3)\n\nAnd [more](x)."


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_text_arrives_whole_and_its_pictures_in_one_piece(size: int) -> None:
    pieces, remainder = [], ""
    for start in range(0, len(TEXT), size):
        ready, remainder = split_at_open_picture(remainder + TEXT[start : start + size])
        pieces.append(ready)
    assert "".join(pieces) + remainder == TEXT
    assert [piece for piece in pieces if "/figures/" in piece] == [
        piece for piece in pieces if PICTURE in piece
    ]


@pytest.mark.parametrize("text", ["![" + "x" * 3000, "![no picture\n\nat all", "![a](b) done"])
def test_what_is_no_picture_is_not_held_back(text: str) -> None:
    assert split_at_open_picture(text) == (text, "")
