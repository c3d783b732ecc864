"""Aliases through the real SDK: an alias replaces an index only where the service allows it."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from azure.core import MatchConditions
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.search.documents import SearchClient
from azure.search.documents.indexes import SearchIndexClient
from azure.search.documents.indexes.models import AnalyzeTextOptions, SearchAlias, SearchIndex

from tests.contract.search_server.conftest import MadeIndex, MakeIndex
from tests.contract.search_server.server_process import SearchServerProcess
from tests.free_ports import find_free_port
from tests.servers import SearchServer

FIELDS = [
    {"name": "id", "type": "Edm.String", "key": True},
    {"name": "title", "type": "Edm.String", "searchable": True},
]
ALIAS = "shelf"


@pytest.fixture(scope="module")
def search_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchServer]:
    """Yield a separate server, because these tests list and delete all aliases."""
    server = SearchServerProcess(find_free_port(), tmp_path_factory.mktemp("search"))
    server.start()
    yield SearchServer(server.endpoint, server.key)
    assert server.stop() == 0


@pytest.fixture
def by_alias(
    search_server: SearchServer,
    credential: AzureKeyCredential,
    indexes: SearchIndexClient,
    old: MadeIndex,
    new: MadeIndex,
) -> Iterator[SearchClient]:
    """Yield a client of the alias, which is deleted before its index, as the service requires."""
    assert old.name != new.name
    with SearchClient(search_server.endpoint, ALIAS, credential) as client:
        yield client
    for name in list(indexes.list_alias_names()):
        indexes.delete_alias(name)


@pytest.fixture
def old(make_index: MakeIndex) -> MadeIndex:
    return make_index(FIELDS, [{"id": "1", "title": "old heron"}])


@pytest.fixture
def new(make_index: MakeIndex) -> MadeIndex:
    return make_index(FIELDS, [{"id": "1", "title": "new heron"}])


def titles(client: SearchClient) -> list[str]:
    return [row["title"] for row in client.search("heron")]


def test_an_alias_serves_documents_of_its_index_and_moves_to_another(
    indexes: SearchIndexClient, by_alias: SearchClient, old: MadeIndex, new: MadeIndex
) -> None:
    with pytest.raises(ResourceNotFoundError):
        titles(by_alias)
    indexes.create_alias(SearchAlias(name=ALIAS, indexes=[old.name]))
    assert titles(by_alias) == ["old heron"]
    by_alias.merge_or_upload_documents([{"id": "2", "title": "second"}])
    assert (old.client.get_document_count(), by_alias.get_document_count()) == (2, 2)
    assert by_alias.get_document("2")["title"] == "second"
    indexes.create_or_update_alias(SearchAlias(name=ALIAS, indexes=[new.name]))
    assert titles(by_alias) == ["new heron"]
    assert indexes.get_alias(ALIAS).indexes == [new.name]
    assert [alias.name for alias in indexes.list_aliases()] == [ALIAS]


def test_the_definition_is_read_by_the_alias_and_nothing_else_is_done_by_it(
    indexes: SearchIndexClient, by_alias: SearchClient, old: MadeIndex
) -> None:
    indexes.create_alias(SearchAlias(name=ALIAS, indexes=[old.name]))
    assert indexes.get_index(ALIAS).name == old.name
    indexes.delete_index(ALIAS)  # the SDK treats status 404 as success
    with pytest.raises(ResourceNotFoundError):
        indexes.analyze_text(ALIAS, AnalyzeTextOptions(text="a", analyzer_name="standard.lucene"))
    assert indexes.get_index(old.name).name == old.name


def test_an_index_and_an_alias_never_share_a_name(
    indexes: SearchIndexClient, by_alias: SearchClient, old: MadeIndex, new: MadeIndex
) -> None:
    indexes.create_alias(SearchAlias(name=ALIAS, indexes=[old.name]))
    with pytest.raises(ResourceExistsError):
        indexes.create_index(SearchIndex({"name": ALIAS, "fields": FIELDS}))
    with pytest.raises(HttpResponseError, match="alias has that name"):
        indexes.create_or_update_index(SearchIndex({"name": ALIAS, "fields": FIELDS}))
    with pytest.raises(ResourceExistsError):
        indexes.create_alias(SearchAlias(name=new.name, indexes=[old.name]))
    with pytest.raises(ResourceExistsError):
        indexes.create_alias(SearchAlias(name=ALIAS, indexes=[new.name]))


@pytest.mark.parametrize("index_names", [[], ["nowhere"], ["a", "b"]])
def test_an_alias_names_exactly_one_index_that_exists(
    indexes: SearchIndexClient, by_alias: SearchClient, index_names: list[str]
) -> None:
    with pytest.raises(HttpResponseError) as refused:
        indexes.create_alias(SearchAlias(name=ALIAS, indexes=index_names))
    assert refused.value.status_code == 400
    assert list(indexes.list_alias_names()) == []


def test_an_alias_of_another_etag_is_neither_moved_nor_deleted(
    indexes: SearchIndexClient, by_alias: SearchClient, old: MadeIndex, new: MadeIndex
) -> None:
    first = indexes.create_alias(SearchAlias(name=ALIAS, indexes=[old.name]))
    indexes.create_or_update_alias(SearchAlias(name=ALIAS, indexes=[new.name]))
    with pytest.raises(ResourceModifiedError):
        indexes.create_or_update_alias(first, match_condition=MatchConditions.IfNotModified)
    with pytest.raises(ResourceModifiedError):
        indexes.delete_alias(first, match_condition=MatchConditions.IfNotModified)
    assert titles(by_alias) == ["new heron"]


def test_strange_bodies_are_refused(http: httpx.Client, by_alias: SearchClient, old: MadeIndex) -> None:
    bodies: list[Any] = [[], {"name": 1}, {"name": "x", "indexes": "y"}]
    for body in (*bodies, {"name": "x", "indexes": [old.name], "z": 1}):
        assert http.post("/aliases", json=body).status_code == 400
        assert http.put("/aliases('x')", json=body).status_code == 400


def test_an_index_is_not_deleted_while_an_alias_stands_for_it(
    indexes: SearchIndexClient, by_alias: SearchClient, old: MadeIndex, new: MadeIndex
) -> None:
    indexes.create_alias(SearchAlias(name=ALIAS, indexes=[old.name]))
    with pytest.raises(HttpResponseError, match=ALIAS) as refused:
        indexes.delete_index(old.name)
    assert refused.value.status_code == 400
    indexes.create_or_update_alias(SearchAlias(name=ALIAS, indexes=[new.name]))
    indexes.delete_index(old.name)
    assert titles(by_alias) == ["new heron"]
