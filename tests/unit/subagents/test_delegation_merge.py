"""Tests for merging the evidence of parent and children: every document is kept, without duplicates."""

import random

import pytest

from shared.answering.delegation_results import Bounds, estimated_tokens, merge_evidence
from shared.answering.subagent_models import Finding, FoundProof, SubagentState
from shared.retrieval.models import Hit
from shared.runs.evidence import Evidence


def hit(doc_id: str, place: int, words: int = 50) -> Hit:
    return Hit(block_id=f"{doc_id}-{place}", doc_id=doc_id, filename=f"{doc_id}.pdf", content="word " * words)


def state(hits: list[Hit], proved: list[Hit]) -> SubagentState:
    findings = tuple(
        Finding(
            kind="claim", text="T", proofs=(FoundProof(quote="q", doc_id=one.doc_id, block_id=one.block_id),)
        )
        for one in proved
    )
    return SubagentState(child_id="r:s001c0", profile="comparator", hits=tuple(hits), findings=findings)


def test_proofs_come_in_turns_over_the_documents() -> None:
    a, b = [hit("a", place) for place in range(3)], [hit("b", place) for place in range(2)]
    merged = merge_evidence(Evidence(), [state([*a, *b], [*a, *b])], (), Bounds(10, 10_000))
    assert [one.block_id for one in merged.hits] == ["a-0", "b-0", "a-1", "b-1", "a-2"]


def test_a_proof_whose_passage_is_not_there_changes_nothing() -> None:
    own = Evidence(hits=(hit("a", 0),))
    assert merge_evidence(own, [state([], [hit("z", 9)])], (), Bounds(10, 10_000)).hits == own.hits


def test_a_long_passage_makes_room_for_shorter_ones_behind_it() -> None:
    own = Evidence(hits=(hit("a", 0, 10), hit("a", 1, 5_000), hit("a", 2, 10)))
    merged = merge_evidence(own, [], (), Bounds(10, 100))
    assert [one.block_id for one in merged.hits] == ["a-0", "a-2"]


@pytest.mark.parametrize("seed", range(60))
def test_whatever_was_found_the_promises_hold(seed: int) -> None:
    chance = random.Random(seed)
    documents = [f"d{n}" for n in range(chance.randint(1, 8))]

    def some(most: int) -> list[Hit]:
        return [
            hit(chance.choice(documents), chance.randint(0, 9), 40) for _ in range(chance.randint(0, most))
        ]

    own, states = Evidence(hits=tuple(some(12))), [state(hits := some(20), hits[::3]) for _ in range(2)]
    hits_by_block = {
        one.block_id: one for one in (*own.hits, *(one for child in states for one in child.hits))
    }
    targets = chance.sample(documents, chance.randint(0, len(documents)))
    bounds = Bounds(passages=chance.randint(len(targets) or 1, 20), tokens=10_000)
    merged = merge_evidence(own, states, targets, bounds).hits
    blocks = [one.block_id for one in merged]
    assert len(blocks) == len(set(blocks)) <= bounds.passages
    assert estimated_tokens(merged) <= bounds.tokens
    assert set(blocks) <= set(hits_by_block)
    available = {one.doc_id for one in hits_by_block.values()}
    assert set(targets) & available <= {one.doc_id for one in merged}
    assert len(blocks) == min(len(hits_by_block), bounds.passages)
