"""Fixtures for an index in a temporary folder, without HTTP."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import JsonValue

from local.search_server.catalog import Catalog
from local.search_server.definition import IndexDefinition
from local.search_server.documents import parse_batch
from local.search_server.index import Index

Document = dict[str, JsonValue]
MakeIndex = Callable[[list[Document], list[Document]], Index]


def upload(index: Index, documents: list[Document]) -> None:
    index.apply(parse_batch(index.schema, {"value": [*documents]}))


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    catalog = Catalog(tmp_path)
    yield catalog
    catalog.close()


@pytest.fixture
def make_index(catalog: Catalog) -> MakeIndex:
    """Return a function that creates an index named `made` from field definitions and documents."""

    def make(fields: list[Document], documents: list[Document]) -> Index:
        index = catalog.create(IndexDefinition.model_validate({"name": "made", "fields": fields}))
        if documents:
            upload(index, documents)
        return index

    return make
