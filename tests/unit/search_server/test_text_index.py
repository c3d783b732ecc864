"""Tests for the derived text index: deletions, filters of any size, and paging through equal scores."""

import numpy as np
import pytest
from tantivy import Query

from local.search_server.definition import IndexDefinition
from local.search_server.schema import Schema
from local.search_server.text_index import TextIndex, best_slots, selected_only, text_name

FIELDS = [
    {"name": "id", "type": "Edm.String", "key": True, "searchable": False},
    {"name": "text", "type": "Edm.String"},
]
COUNT = 3000


@pytest.fixture(scope="module")
def text_index() -> TextIndex:
    """Return an index whose texts all contain `common`. Longer texts score less, and each length occurs many
    times.
    """
    definition = IndexDefinition.model_validate({"name": "texts", "fields": FIELDS}).with_defaults()
    index = TextIndex(Schema(definition))
    index.add((slot, {"text": "common " + "filler " * (slot % 7)}) for slot in range(COUNT))
    return index


def _common(text_index: TextIndex) -> Query:
    field = Schema(
        IndexDefinition.model_validate({"name": "texts", "fields": FIELDS}).with_defaults()
    ).fields["text"]
    return Query.term_query(text_index.layout, text_name(field), "common")


@pytest.mark.parametrize("allowed", [0, 1, 5, 900, 2999, 3000])
def test_a_mask_and_a_narrowed_query_find_the_same(text_index: TextIndex, allowed: int) -> None:
    searcher, query = text_index.commit(), _common(text_index)
    slots = np.sort(np.random.default_rng(allowed).permutation(COUNT)[:allowed])
    mask = np.zeros(COUNT, dtype=np.bool_)
    mask[slots] = True
    masked = best_slots(searcher, query, mask, 50)
    narrowed = best_slots(searcher, selected_only(text_index.layout, query, slots.tolist()), None, 50)
    assert len(masked) == min(50, allowed)
    assert masked == narrowed
    assert all(mask[slot] for slot, _ in masked)


def test_equal_scores_come_in_slot_order_whatever_the_limit(text_index: TextIndex) -> None:
    searcher, query = text_index.commit(), _common(text_index)
    whole = best_slots(searcher, query, None, COUNT)
    assert [slot for slot, _ in whole[:3]] == [0, 7, 14]
    for limit in (1, 2, 51, 429, 1000):
        assert best_slots(searcher, query, None, limit) == whole[:limit]
