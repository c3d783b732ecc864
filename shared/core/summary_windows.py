"""Splitting what is to be summarised into pieces that a model reads at once. Pure.

Sizes are estimates: 3.6 characters a token, as where blocks are cut without the model's tokenizer.
"""

from collections.abc import Sequence

CHARS_PER_TOKEN = 3.6
_FRAME_TOKENS = 20  # of the element around a block or a finding


def tokens_of(text: str) -> int:
    """How many tokens a text takes in a prompt, about."""
    return round(len(text) / CHARS_PER_TOKEN) + _FRAME_TOKENS


def split(sizes: Sequence[int], most: int) -> list[range]:
    """Places of neighbours that together have at most `most` tokens; one that is larger stands alone."""
    pieces: list[range] = []
    start = total = 0
    for place, size in enumerate(sizes):
        if place > start and total + size > most:
            pieces.append(range(start, place))
            start, total = place, 0
        total += size
    if sizes:
        pieces.append(range(start, len(sizes)))
    return pieces


def windows_of(
    blocks: Sequence[tuple[str, int]], most_tokens: int, most_windows: int
) -> tuple[tuple[tuple[str, ...], ...], int]:
    """Windows of block ids, and how many blocks are left out behind the last window that is admitted.

    Args:
        blocks: (block id, tokens) in the order of the document.
    """
    pieces = split([size for _, size in blocks], most_tokens)
    windows = tuple(tuple(blocks[place][0] for place in piece) for piece in pieces[:most_windows])
    return windows, len(blocks) - sum(len(window) for window in windows)
