"""Index definitions through the real SDK: creation, changes under etags, returned and refused properties."""

from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceModifiedError,
)
from azure.search.documents.indexes import SearchIndexClient
from azure.search.documents.indexes.models import SearchIndex

from tests.contract.search_server.conftest import MakeIndex

KEY = {"name": "id", "type": "Edm.String", "key": True}


def test_a_definition_comes_back_with_its_defaults(indexes: SearchIndexClient) -> None:
    index = SearchIndex(
        {"name": "defaults", "fields": [KEY, {"name": "n", "type": "Edm.Int32"}], **_vector_part()}
    )
    created_index = indexes.create_index(index)
    again = indexes.get_index("defaults")
    indexes.delete_index("defaults")
    number = again.fields[1]
    assert (number.filterable, number.sortable, number.facetable, number.searchable) == (
        True,
        True,
        True,
        False,
    )
    algorithm = again.as_dict()["vectorSearch"]["algorithms"][0]
    assert algorithm["hnswParameters"] == {"m": 4, "efConstruction": 400, "efSearch": 500, "metric": "cosine"}
    assert again.e_tag == created_index.e_tag


def test_a_stale_etag_neither_changes_nor_deletes(indexes: SearchIndexClient) -> None:
    first = indexes.create_or_update_index(SearchIndex({"name": "tagged", "fields": [KEY]}))
    stale = first.e_tag
    second = indexes.create_or_update_index(SearchIndex({"name": "tagged", "fields": [KEY]}))
    assert second.e_tag != stale
    first.e_tag = stale
    with pytest.raises(ResourceModifiedError):
        indexes.create_or_update_index(first, match_condition=MatchConditions.IfNotModified)
    with pytest.raises(ResourceModifiedError):
        indexes.delete_index(first, match_condition=MatchConditions.IfNotModified)
    indexes.create_or_update_index(second, match_condition=MatchConditions.IfNotModified)
    indexes.delete_index("tagged")


def test_a_new_field_keeps_the_documents_and_can_be_used_at_once(
    make_index: MakeIndex, indexes: SearchIndexClient
) -> None:
    index = make_index([KEY, {"name": "a", "type": "Edm.String"}], [{"id": "1", "a": "old words"}])
    definition = indexes.get_index(index.name)
    definition.fields.append(SearchIndex({"fields": [{"name": "b", "type": "Edm.Int32"}]}).fields[0])
    indexes.create_or_update_index(definition)
    index.client.merge_documents([{"id": "1", "b": 7}])
    assert [row["a"] for row in index.client.search("words", filter="b eq 7")] == ["old words"]


def test_what_would_be_kept_and_not_applied_is_refused(indexes: SearchIndexClient) -> None:
    boosted = {"name": "refused", "fields": [KEY], "defaultScoringProfile": "p"}
    distant = _vector_part()
    distant["vectorSearch"]["algorithms"][0]["hnswParameters"] = {"metric": "euclidean"}
    for definition in (boosted, {"name": "refused", "fields": [KEY], **distant}):
        with pytest.raises(HttpResponseError) as refused:
            indexes.create_index(SearchIndex(definition))
        assert refused.value.status_code == 400


def test_an_existing_field_cannot_change(make_index: MakeIndex, indexes: SearchIndexClient) -> None:
    index = make_index([KEY, {"name": "a", "type": "Edm.String", "filterable": False}])
    changed = {"name": "a", "type": "Edm.String", "filterable": True}
    with pytest.raises(HttpResponseError, match="cannot be changed"):
        indexes.create_or_update_index(SearchIndex({"name": index.name, "fields": [KEY, changed]}))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([{"name": "id", "type": "Edm.String"}], "key field"),
        ([KEY, {"name": "a", "type": "Edm.Money"}], "not supported"),
        ([KEY, {"name": "a", "type": "Edm.String", "colour": "red"}], "colour"),
        ([KEY, {"name": "a", "type": "Edm.String", "analyzer": "klingon.lucene"}], "klingon"),
        ([KEY, {"name": "a", "type": "Edm.Int32", "searchable": True}], "searchable"),
        ([KEY, {"name": "a", "type": "Collection(Edm.Single)", "dimensions": 3}], "vectorSearchProfile"),
        ([KEY, {"name": "a", "type": "Edm.String"}, {"name": "A", "type": "Edm.String"}], "twice"),
        ([KEY, {"name": "a", "type": "Edm.String", "synonymMaps": ["m"]}], "synonym"),
    ],
)
def test_a_definition_that_cannot_be_served_is_refused(
    indexes: SearchIndexClient, fields: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(HttpResponseError, match=message) as refused:
        indexes.create_index(SearchIndex({"name": "refused", "fields": fields}))
    assert refused.value.status_code == 400


def _vector_part() -> dict[str, Any]:
    return {
        "vectorSearch": {
            "algorithms": [{"name": "graph", "kind": "hnsw"}],
            "profiles": [{"name": "p", "algorithm": "graph"}],
        }
    }
