"""Tests for near-miss quotations: all kinds are generated, and accepted only if blocks contain them."""

from evals.quotes.blocks import SourceBlock
from evals.quotes.near_misses import near_misses
from shared.evidence.alignment import align
from shared.evidence.block_text import BlockText

BLOCKS = [
    SourceBlock(
        "pump.pdf",
        "The pump of Brightcast Foundry runs at 15 bar and weighs 5 kg in all. It is not made for liquids "
        "that hold sand or gravel. The contract of 2023 lasts for 30 days after its end.",
    ),
    SourceBlock(
        "press.pdf",
        "The press of the plant in Leipzig was built in 1992 by its owner. Nobody may enter the hall without "
        "a helmet and a pair of goggles. A part of 102 millimetres was never found in the plant.",
    ),
]
KINDS = {
    "digit",
    "unit",
    "name",
    "negation_added",
    "negation_dropped",
    "negation_elided",
    "power",
    "other_document",
    "wrong_order",
}


def test_each_kind_is_made_and_none_is_what_the_block_says() -> None:
    misses = near_misses(BLOCKS, per_kind=5)
    assert {miss.kind for miss in misses} == KINDS
    assert all(miss.quote not in miss.block for miss in misses)
    assert near_misses(BLOCKS, per_kind=5) == misses, "the same for the same seed"


def test_none_passes() -> None:
    for seed in range(20):
        for miss in near_misses(BLOCKS, per_kind=5, seed=seed):
            assert align(miss.quote, BlockText(miss.block)) is None, miss
