"""Tests for the setting DATABASES: accepted values and error messages."""

import json
from typing import Any

import pytest

from shared.platform.database_sources import database_sources

SHOP: dict[str, Any] = {
    "name": "shop",
    "host": "shop.postgres.database.azure.com",
    "database": "shop",
    "user": "groundwork",
    "password": "hidden-1",
    "views": ["reporting.orders"],
    "access": ["traders"],
}


def test_a_database_has_an_id_that_no_document_has() -> None:
    (source,) = database_sources(json.dumps([SHOP]))
    assert (source.doc_id, source.port, source.is_local) == ("db-shop", 5432, False)
    assert "hidden" not in repr(source)


@pytest.mark.parametrize(
    "wrong",
    [
        {"access": []},
        {"views": []},
        {"views": ["orders"]},
        {"views": ['reporting."Orders"']},
        {"views": ["reporting.orders; DROP TABLE x"]},
        {"name": "Shop"},
        {"kind": "mssql"},
        {"passwort": "hidden-2"},
    ],
)
def test_what_is_wrong_is_named_without_values(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^0\.") as refused:
        database_sources(json.dumps([{**SHOP, **wrong}]))
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize("text", ["{", '"hidden"', json.dumps([SHOP, SHOP])])
def test_a_list_of_databases_is_wanted(text: str) -> None:
    with pytest.raises(ValueError, match=r"JSON|valid|same name") as refused:
        database_sources(text)
    assert "hidden" not in str(refused.value)
