"""Tests for a single index without HTTP: stable snapshots, cached filters and atomic writes."""

import sqlite3
from pathlib import Path

import pytest

from tests.unit.search_server.conftest import Document, MakeIndex, upload

FIELDS: list[Document] = [
    {"name": "id", "type": "Edm.String", "key": True, "searchable": False},
    {"name": "text", "type": "Edm.String"},
    {"name": "acl", "type": "Collection(Edm.String)", "searchable": False},
]


def _documents(*names: str) -> list[Document]:
    return [{"id": name, "text": f"text of {name}", "acl": ["all"]} for name in names]


def test_a_view_keeps_showing_what_it_showed(make_index: MakeIndex) -> None:
    index = make_index(FIELDS, _documents("a", "b"))
    with index.view() as view:
        upload(index, [{"id": "a", "text": "changed", "acl": ["nobody"]}, *_documents("c")])
        assert len(view.select("acl/any(x: x eq 'all')").slots) == 2
        assert len(view.select("acl/any(x: x eq 'nobody')").slots) == 0
        assert view.searcher.num_docs == 2
    with index.view() as view:
        assert len(view.select("acl/any(x: x eq 'all')").slots) == 2
        assert len(view.select("acl/any(x: x eq 'nobody')").slots) == 1


def test_a_write_that_fails_leaves_nothing_behind(make_index: MakeIndex, tmp_path: Path) -> None:
    index = make_index(FIELDS, _documents("a"))
    with sqlite3.connect(tmp_path / "made.sqlite") as other:
        other.execute("CREATE TRIGGER no BEFORE INSERT ON vectors BEGIN SELECT RAISE(ABORT, 'full'); END")
        other.execute("CREATE TRIGGER no2 BEFORE INSERT ON elements BEGIN SELECT RAISE(ABORT, 'full'); END")
    other.close()
    with pytest.raises(sqlite3.IntegrityError):
        upload(index, _documents("b"))
    with index.view() as view:
        assert view.searcher.num_docs == 1
        assert len(view.select(None).slots) == 1
    with sqlite3.connect(tmp_path / "made.sqlite") as other:
        other.execute("DROP TRIGGER no")
        other.execute("DROP TRIGGER no2")
    other.close()
    upload(index, _documents("b"))
    assert index.count() == 2
