"""Tests for exact nearest neighbours: both methods match plain arithmetic, and snapshots are stable."""

import numpy as np
import pytest

from local.search_server.vectors import VectorColumn

ROWS = 2500
DIMENSIONS = 8


@pytest.mark.parametrize("share", [0.01, 0.2, 0.9, 1.1])
def test_the_nearest_are_those_of_plain_arithmetic(share: float) -> None:
    chance = np.random.default_rng(3)
    vectors = chance.normal(size=(ROWS, DIMENSIONS)).astype(np.float32)
    query = chance.normal(size=DIMENSIONS).astype(np.float32)
    mask = chance.random(ROWS) < share
    column = VectorColumn(DIMENSIONS)
    for slot, vector in enumerate(vectors):
        column.append(slot, vector)
    nearness = vectors @ query / np.linalg.norm(vectors, axis=1)
    expected = [slot for slot in np.argsort(-nearness, kind="stable").tolist() if mask[slot]][:10]
    neighbours = column.rows().nearest(query, mask, 10)
    assert [slot for slot, _ in neighbours] == expected
    assert [score for _, score in neighbours] == sorted((score for _, score in neighbours), reverse=True)


def test_a_snapshot_does_not_see_what_comes_later() -> None:
    column = VectorColumn(2)
    column.append(0, np.array([1, 0], dtype=np.float32))
    before = column.rows()
    for slot in range(1, 5000):
        column.append(slot, np.array([0, 1], dtype=np.float32))
    mask = np.ones(5000, dtype=np.bool_)
    assert [slot for slot, _ in before.nearest(np.array([0, 1], dtype=np.float32), mask, 3)] == [0]


def test_dead_rows_are_dropped_and_the_living_are_still_found() -> None:
    column = VectorColumn(2)
    for slot in range(4000):
        column.append(slot, np.array([slot + 1, 4000 - slot], dtype=np.float32))
    size = column.size_bytes()
    alive = np.arange(4000) % 10 == 0
    column.drop_dead(alive)
    assert column.size_bytes() < size / 5
    neighbours = column.rows().nearest(np.array([1, 0], dtype=np.float32), alive, 2)
    assert [slot for slot, _ in neighbours] == [3990, 3980]
