"""Tests for search over HTTP when one of its services fails."""

import pytest

from shared.platform.errors import DependencyError
from shared.retrieval import documents
from tests.fakes.models import HashingEmbedder
from tests.fakes.replaced import Replaced
from tests.unit.functions.http_app import IngestingClient, as_user, connect, make_app, settings_of_tests
from tests.world import corpus_services


async def test_without_the_embedder_passages_are_found_by_their_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services = await corpus_services(settings=settings_of_tests())

    async def failing(*_: object) -> None:
        raise DependencyError("The model is out of reach.")

    services.embedder = Replaced(HashingEmbedder(), embed=failing)
    connect(monkeypatch, services)
    app = make_app(IngestingClient(services))
    response = await as_user(app, "anna").post("/search", json={"query": "revenue"})
    assert response.status_code == 200
    assert "48 million" in response.text


async def test_what_only_documents_have_narrows_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    services = await corpus_services(settings=settings_of_tests())
    connect(monkeypatch, services)
    anna = as_user(make_app(IngestingClient(services)), "anna")
    for doc_id, changes in {
        "report-2023": {
            "tags": ["finance", "old"],
            "language": "de",
            "document_date": "2023-12-31T00:00:00Z",
        },
        "report-2024": {"tags": ["finance"], "language": "en", "document_date": "2024-12-31T00:00:00Z"},
    }.items():
        await services.documents_index.merge([{"doc_id": doc_id, **changes}])

    async def find_ids(**filters: object) -> set[str]:
        body = {"query": "revenue", "filters": filters}
        results = (await anna.post("/search", json=body)).raise_for_status().json()["results"]
        return {hit["doc_id"] for hit in results}

    assert await find_ids(tags=["finance"]) == {"report-2023", "report-2024"}
    assert await find_ids(tags="old") == {"report-2023"}
    assert await find_ids(language="en", tags="finance") == {"report-2024"}
    assert await find_ids(document_date={"start": "2024-01-01"}) == {"report-2024"}
    assert await find_ids(language="en", doc_id="report-2023") == set()
    assert await find_ids(language="fr") == set()
    by_address = (await anna.get("/search?q=revenue&tags=old&tags=x&dated_to=2023-12-31")).json()["results"]
    assert {hit["doc_id"] for hit in by_address} == {"report-2023"}


@pytest.mark.parametrize(
    ("address", "detail"),
    [
        ("/search", "q: Field required."),
        ("/search?q=x&top_k=51", "top_k: Input should be less than or equal to 50."),
        ("/search?q=x&tag=old", "Unknown query parameter 'tag'."),
        ("/search?q=x&uploaded_from=yesterday", "uploaded_from"),
    ],
)
async def test_a_wrong_address_of_a_search_is_refused(
    monkeypatch: pytest.MonkeyPatch, address: str, detail: str
) -> None:
    services = await corpus_services(settings=settings_of_tests())
    connect(monkeypatch, services)
    refused = await as_user(make_app(IngestingClient(services)), "anna").get(address)
    assert refused.status_code == 400
    assert refused.json()["detail"].startswith(detail)


async def test_filters_that_too_many_documents_pass_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_PAGE_OF_IDS", 1)
    monkeypatch.setattr(documents, "_MAX_IDS", 1)
    services = await corpus_services(settings=settings_of_tests())
    connect(monkeypatch, services)
    body = {"query": "revenue", "filters": {"upload_date": {"start": "2020-01-01"}}}
    refused = await as_user(make_app(IngestingClient(services)), "anna").post("/search", json=body)
    assert (refused.status_code, refused.json()["title"]) == (400, "InvalidQueryError")
