"""Deltas in any pieces give Unicode text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.platform.language_models.prompted import DeltaText

WRENCH = "\U0001f527"
HIGH, LOW = "\ud83d", "\udd27"  # its halves


def read(*deltas: str) -> str:
    text = DeltaText()
    return "".join([*(text.feed(delta) for delta in deltas), text.finish()])


@pytest.mark.parametrize(
    ("deltas", "text"),
    [
        (["a ", "tool"], "a tool"),
        ([WRENCH], WRENCH),
        ([HIGH + LOW], WRENCH),
        (["a" + HIGH, LOW + "b"], f"a{WRENCH}b"),
        ([HIGH, "", LOW], WRENCH),
        ([HIGH], "\ufffd"),
        ([HIGH, "b"], "\ufffdb"),
        (["a" + LOW], "a\ufffd"),
        ([LOW, HIGH], "\ufffd\ufffd"),
        ([HIGH, HIGH, LOW], f"\ufffd{WRENCH}"),
        (["\ufeffa"], "\ufeffa"),
        ([], ""),
    ],
)
def test_halves_are_joined_and_lone_ones_replaced(deltas: list[str], text: str) -> None:
    assert read(*deltas) == text


@given(st.text(), st.integers(1, 5))
def test_whole_text_comes_out_as_it_went_in_however_it_was_cut(text: str, size: int) -> None:
    units = text.encode("utf-16-le")
    deltas = [
        units[start : start + 2 * size].decode("utf-16-le", "surrogatepass")
        for start in range(0, len(units), 2 * size)
    ]
    assert read(*deltas) == text


@given(st.lists(st.text(alphabet=["a", HIGH, LOW, WRENCH])))
def test_whatever_comes_can_be_sent(deltas: list[str]) -> None:
    assert read(*deltas).encode() is not None
