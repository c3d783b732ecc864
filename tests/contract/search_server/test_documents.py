"""Documents through the real SDK: the status of every action by key, lookups, and refused batches."""

from typing import Any

import httpx
import pytest
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.search.documents import IndexDocumentsBatch, SearchClient

from tests.contract.search_server.conftest import MadeIndex, MakeIndex
from tests.contract.search_server.library import BOOKS, DIMENSIONS, FIELDS, PARTS
from tests.servers import SearchServer


def test_each_action_is_answered_per_key(books: MadeIndex) -> None:
    client = books.client
    batch = IndexDocumentsBatch()
    batch.add_upload_actions([{"id": "1", "title": "New"}, {"id": "90", "title": "Newer"}])
    batch.add_merge_actions([{"id": "2", "pages": 1}, {"id": "91", "pages": 1}])
    batch.add_merge_or_upload_actions([{"id": "3", "pages": 2}, {"id": "92", "pages": 2}])
    batch.add_delete_actions([{"id": "4"}, {"id": "93"}])
    results = client.index_documents(batch)
    expected = [
        ("1", 200),
        ("90", 201),
        ("2", 200),
        ("91", 404),
        ("3", 200),
        ("92", 201),
        ("4", 200),
        ("93", 200),
    ]
    assert [(result.key, result.status_code) for result in results] == expected
    assert [result.key for result in results if not result.succeeded] == ["91"]
    assert client.get_document_count() == len(BOOKS) + 2 - 1


def test_a_batch_with_a_failure_is_a_207(books: MadeIndex, http: httpx.Client) -> None:
    name = books.name
    actions = [{"@search.action": "merge", "id": "nobody"}, {"@search.action": "delete", "id": "nobody"}]
    answer = http.post(f"/indexes('{name}')/docs/search.index", json={"value": actions})
    assert answer.status_code == 207
    assert [row["statusCode"] for row in answer.json()["value"]] == [404, 200]


def test_upload_replaces_and_merge_keeps(books: MadeIndex) -> None:
    client = books.client
    client.merge_documents([{"id": "1", "pages": 7, "tags": ["one"]}])
    merged = client.get_document("1")
    assert (merged["pages"], merged["code"]) == (7, "AB-100")
    assert (merged["tags"], merged["title"], merged["vector"]) == (["one"], "Pumps and valves", [1, 0, 0, 0])
    client.upload_documents([{"id": "1", "title": "Only a title"}])
    replaced = client.get_document("1")
    assert (replaced["title"], replaced["pages"], replaced["tags"], replaced["vector"]) == (
        "Only a title",
        None,
        [],
        None,
    )


def test_one_key_may_occur_twice_in_a_batch(make_index: MakeIndex) -> None:
    index = make_index(FIELDS, **PARTS)
    batch = IndexDocumentsBatch()
    batch.add_upload_actions([{"id": "1", "title": "first"}])
    batch.add_merge_actions([{"id": "1", "pages": 5}])
    batch.add_delete_actions([{"id": "2"}])
    batch.add_merge_or_upload_actions([{"id": "2", "title": "second"}])
    index.client.index_documents(batch)
    assert (index.client.get_document("1")["title"], index.client.get_document("1")["pages"]) == ("first", 5)
    assert index.client.get_document_count() == 2


def test_a_changed_document_is_found_by_its_new_words_only(books: MadeIndex) -> None:
    client = books.client
    client.merge_documents([{"id": "2", "content": "Nothing but kangaroos", "vector": [0, 0, 0, 1]}])
    assert [row["id"] for row in client.search("kangaroos")] == ["2"]
    assert "2" not in [row["id"] for row in client.search("wren")]


def test_a_lookup_selects_and_misses(books: MadeIndex) -> None:
    client = books.client
    assert client.get_document("1", selected_fields=["id", "genre"]) == {"id": "1", "genre": "engineering"}
    assert "secret_note" not in client.get_document("1")
    with pytest.raises(ResourceNotFoundError):
        client.get_document("99")


def test_dates_come_back_in_utc(books: MadeIndex) -> None:
    client = books.client
    assert client.get_document("4")["printed"] == "2019-11-05T06:00:00Z"
    assert client.get_document("3")["printed"] == "2022-01-31T23:59:59.500000Z"


@pytest.mark.parametrize(
    "document",
    [
        {"id": "x", "surprise": 1},
        {"id": "x", "title": {"surprise": 1}},
        {"id": "x", "vector": [1.0] * (DIMENSIONS - 1)},
        {"id": "x", "vector": ["1", "2", "3", "4"]},
        {"id": "x", "pages": "many"},
        {"id": "x", "pages": 2**31},
        {"id": "x", "in_stock": 1},
        {"id": "x", "printed": "yesterday"},
        {"id": "x", "printed": "2020-01-01T00:00:00"},
        {"id": "x", "tags": "birds"},
        {"id": "x", "tags": [None]},
        {"id": "a/b"},
        {"title": "no key"},
    ],
)
def test_one_bad_document_refuses_the_whole_batch(make_index: MakeIndex, document: dict[str, Any]) -> None:
    index = make_index(FIELDS, **PARTS)
    with pytest.raises(HttpResponseError) as refused:
        index.client.upload_documents([{"id": "good"}, document])
    assert refused.value.status_code == 400
    assert index.client.get_document_count() == 0


def test_a_batch_over_the_limit_is_413_and_the_sdk_splits_it(
    make_index: MakeIndex, http: httpx.Client
) -> None:
    index = make_index(FIELDS, **PARTS)
    documents = [{"id": str(number)} for number in range(1001)]
    address = f"/indexes('{index.name}')/docs/search.index"
    assert http.post(address, json={"value": documents}).status_code == 413
    assert http.post(address, content=b" " * (16 * 1024 * 1024 + 1)).status_code == 413
    assert len(index.client.upload_documents(documents)) == 1001
    assert index.client.get_document_count() == 1001


def test_a_wrong_key_is_403(search_server: SearchServer, make_index: MakeIndex) -> None:
    name = make_index(FIELDS, **PARTS).name
    with SearchClient(search_server.endpoint, name, AzureKeyCredential("wrong")) as client:
        with pytest.raises(HttpResponseError) as refused:
            client.get_document_count()
        assert refused.value.status_code == 403


def test_only_health_needs_no_key(search_server: SearchServer) -> None:
    assert httpx.get(search_server.endpoint + "/health", timeout=60).json() == {"status": "ok"}
    assert httpx.get(search_server.endpoint + "/indexes", timeout=60).status_code == 403
