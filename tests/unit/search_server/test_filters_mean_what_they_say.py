"""Compares random filters with a plain Python evaluator: the server must select the same documents."""

import random

from local.search_server.index import View
from tests.unit.search_server.conftest import MakeIndex
from tests.unit.search_server.filter_cases import FIELDS, make_case, make_documents

SEED = 20_260_401
DOCUMENTS = 60
FILTERS = 3_000


def test_random_filters_select_what_python_selects(make_index: MakeIndex) -> None:
    chance = random.Random(SEED)
    documents = make_documents(chance, DOCUMENTS)
    index = make_index(FIELDS, documents)
    shares = []
    with index.view() as view:
        for _ in range(FILTERS):
            case = make_case(chance)
            expected = {document["id"] for document in documents if case.predicate(document)}
            assert _selected(view, case.text) == expected, case.text
            shares.append(len(expected) / len(documents))
    # Filters that pass everything or nothing would prove little.
    assert sum(0 < share < 1 for share in shares) > 0.75 * FILTERS


def _selected(view: View, text: str) -> set[str]:
    slots = view.select(text).slots.tolist()
    keys: dict[int, str] = dict(view.connection.execute("SELECT slot, key FROM documents"))
    return {keys[slot] for slot in slots}
