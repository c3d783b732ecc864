"""Bad requests never cause a 500, which azure-core would retry, and filters are never ignored, which would
leak.
"""

import json
from typing import Any

import httpx
import pytest
from azure.core.exceptions import HttpResponseError

from tests.contract.search_server.conftest import MadeIndex

REFUSED_FILTERS = (
    "nothing eq 1",
    "content eq 'x'",
    "pages eq 'x'",
    "pages eq",
    "pages eq 1 and",
    "pages in (1, 2)",
    "pages add 1 eq 2",
    "pages eq price",
    "pages eq 99999999999999999999",
    "price lt 1e999",
    "not pages eq 1",
    "pages lt null",
    "in_stock gt false",
    "pages",
    "startswith(title, 'a')",
    "contains(title, 'a')",
    "length(title) gt 3",
    "search.ismatchscoring('birds')",
    "search.ismatch('birds')",
    "search.in(pages, '1,2')",
    "search.in(title)",
    "search.in(title, 'a', '')",
    "search.in(title, code)",
    "tags eq 'birds'",
    "tags/any(t: t ne 'birds')",
    "tags/any(t: t eq 'a' and t eq 'b')",
    "tags/any(t: not (t eq 'a'))",
    "tags/all(t: t eq 'birds')",
    "tags/any(t: pages eq 3)",
    "tags/any(t: other eq 'x')",
    "tags/some(t: t eq 'x')",
    "title/any(t: t eq 'x')",
    "vector/any(v: v eq 1.0)",
    "printed gt 2020-01-01",
    "printed gt 2020-02-31T00:00:00Z",
    "printed gt '2020-01-01T00:00:00Z'",
    "title/nothing eq 'x'",
    "'a' eq 'a'",
    "title eq 'unclosed",
    'title eq "double"',
    "title eq 'a'; drop table documents",
    "(" * 3000 + "in_stock",
    "not " * 2000 + "in_stock",
    "search.in(title, '" + ",".join(str(number) for number in range(40_000)) + "')",
)

RAW_BODIES = (
    b"",
    b"{",
    b"[]",
    b"null",
    b'"text"',
    b"[" * 100_000,
    b'{"search": 1}',
    b'{"search": "\\ud800"}',
    b'{"top": -1}',
    b'{"top": "many"}',
    b'{"top": 1e400}',
    b'{"skip": 100001}',
    b'{"unknown": true}',
    b'{"queryType": "odd"}',
    b'{"orderby": "pages sideways"}',
    b'{"orderby": [1]}',
    b'{"facets": ["genre,count:x"]}',
    b'{"facets": ["genre,interval:3"]}',
    b'{"highlight": "content"}',
    b'{"scoringProfile": "x"}',
    b'{"vectorFilterMode": "postFilter"}',
    b'{"vectorQueries": [{}]}',
    b'{"vectorQueries": [{"kind": "vector", "vector": [NaN, 1, 1, 1], "fields": "vector"}]}',
    b'{"vectorQueries": [{"kind": "vector", "vector": [1e39, 1, 1, 1], "fields": "vector"}]}',
    b'{"queryType": "semantic", "semanticConfiguration": "books", "answers": "all"}',
    b'{"suggesterName": "sg", "search": ""}',
    b'{"suggesterName": "sg", "search": "!!"}',
    b'{"value": {}}',
    b'{"value": [1]}',
    b'{"value": [{"@search.action": "explode", "id": "1"}]}',
    b'{"value": [{"id": 1}]}',
    b'{"value": [{"id": "1", "pages": 1e300}]}',
    b'{"value": [{"id": "1", "title": "\\udc00"}]}',
    b'{"text": "a", "analyzer": "none"}',
    b'{"name": "x", "fields": [{"name": "id"}]}',
    b'{"name": "x", "fields": [{"name": "id", "type": "Edm.String", "key": true, "fields": []}]}',
    b"\xff\xfe",
)


@pytest.mark.parametrize("text", REFUSED_FILTERS, ids=lambda text: text[:40])
def test_a_filter_that_is_not_understood_is_a_400(books: MadeIndex, text: str) -> None:
    with pytest.raises(HttpResponseError) as refused:
        list(books.client.search("*", filter=text))
    assert refused.value.status_code == 400


def test_no_body_makes_the_server_fail(books: MadeIndex, http: httpx.Client) -> None:
    one = f"/indexes('{books.name}')"
    paths = [
        "/indexes",
        one + "/search.analyze",
        *(
            f"{one}/docs/search.{name}"
            for name in ("post.search", "post.suggest", "post.autocomplete", "index")
        ),
    ]
    for path in paths:
        for body in RAW_BODIES:
            status = http.post(path, content=body).status_code
            assert status < 500, (path, body[:100], status)
    assert http.put(one, content=b"{").status_code == 400
    assert http.get("/nowhere").status_code == 404
    assert http.get(one + "/docs('%FF')").status_code == 404


@pytest.mark.parametrize(
    "text", ["'", '"', "~", "a~~", "^3", "\\", "a\\", "**", "?*", "-", "+-|", "()", "🙂*", "\x00", "a" * 5000]
)
def test_odd_search_texts_are_answered(books: MadeIndex, http: httpx.Client, text: str) -> None:
    for query_type in ("simple", "full"):
        request: dict[str, Any] = {"search": text, "queryType": query_type}
        answer = http.post(f"/indexes('{books.name}')/docs/search.post.search", content=json.dumps(request))
        assert answer.status_code in (200, 400)
