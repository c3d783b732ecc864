"""Parser services are chosen by settings; what cannot work stops the start and names the variable."""

from typing import Any

import pytest
from pydantic import ValidationError

from shared.ingestion.acceptance import pipeline
from shared.wiring import Connections, build_services
from tests.fakes.services import fake_settings

AZURE = "https://x.cognitiveservices.azure.com"


@pytest.mark.parametrize(
    ("changes", "variable"),
    [
        ({"parser_backend": "document_intelligence"}, "DOCUMENT_INTELLIGENCE_ENDPOINT is missing"),
        ({"text_recognition": "document_intelligence"}, "DOCUMENT_INTELLIGENCE_ENDPOINT is missing"),
        ({"parser_backend": "docling"}, "DOCLING_ENDPOINT is missing"),
        ({"parser_backend": "docling", "docling_endpoint": "docling:5001"}, "DOCLING_ENDPOINT is not"),
        (
            {"parser_backend": "docling", "docling_endpoint": "http://me:it@docling"},
            "DOCLING_ENDPOINT is not",
        ),
        ({"parser_backend": "tika"}, "PARSER_BACKEND"),
        ({"text_recognition": "docling"}, "TEXT_RECOGNITION"),
        ({"parser_service_timeout_s": 301}, "PARSER_SERVICE_TIMEOUT_S"),
    ],
)
def test_a_choice_that_cannot_work_is_refused_by_name(changes: dict[str, Any], variable: str) -> None:
    with pytest.raises(ValidationError, match=variable):
        fake_settings(**changes)


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "http://x.cognitiveservices.azure.com"])
def test_a_key_or_token_goes_over_https_alone_but_for_a_key_on_this_machine(
    endpoint: str, key: str | None
) -> None:
    changes: dict[str, Any] = {
        "parser_backend": "document_intelligence",
        "document_intelligence_endpoint": endpoint,
        "document_intelligence_key": key,
    }
    if key and "127" in endpoint:
        assert fake_settings(**changes).ingestion.document_intelligence_key == key
        return
    with pytest.raises(ValidationError, match="DOCUMENT_INTELLIGENCE_"):
        fake_settings(**changes)


def test_keys_are_not_shown_with_the_settings() -> None:
    settings = fake_settings(document_intelligence_key="secret-1", docling_api_key="secret-2")
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    ("changes", "layout", "pages"),
    [
        ({}, None, None),
        ({"parser_backend": "docling"}, "the docling service", None),
        ({"parser_backend": "document_intelligence"}, "the Document Intelligence resource", None),
        ({"text_recognition": "document_intelligence"}, None, "the Document Intelligence resource"),
    ],
)
def test_settings_alone_choose_the_service(
    changes: dict[str, Any], layout: str | None, pages: str | None
) -> None:
    reached = {"document_intelligence_endpoint": AZURE, "docling_endpoint": "http://docling:5001"}
    chosen = build_services(fake_settings(**reached, **changes)).parser_services
    assert (chosen.layout.name if chosen.layout else None) == layout
    assert (chosen.pages.name if chosen.pages else None) == pages


def test_another_service_makes_documents_new() -> None:
    reached = {"document_intelligence_endpoint": AZURE, "docling_endpoint": "http://docling:5001"}
    choices: list[dict[str, Any]] = [
        {},
        {"parser_backend": "docling"},
        {"parser_backend": "document_intelligence"},
        {"text_recognition": "document_intelligence"},
    ]
    assert len({pipeline(fake_settings(**reached, **choice)) for choice in choices}) == len(choices)
    assert pipeline(fake_settings()) == pipeline(fake_settings(**reached))


async def test_without_a_key_document_intelligence_is_asked_with_the_identity() -> None:
    to = Connections(fake_settings(document_intelligence_endpoint=AZURE))
    client = await to.document_intelligence.opened()
    assert type(client._config.authentication_policy).__name__ == "AsyncBearerTokenCredentialPolicy"
    await to.close()
