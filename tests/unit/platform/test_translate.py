"""Messages that name what to check, and hold no secrets."""

import pytest
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ServiceRequestError,
    ServiceResponseTimeoutError,
)

from shared.platform.calls import BLOBS, SEARCH, azure_errors, from_azure, model_endpoint, retry_after_s
from shared.platform.errors import AuthenticationError, CallTimeoutError, DependencyError
from tests.fakes.services import fake_settings

SIGNED = "https://acc.blob.core.windows.net/c/b?sv=2024&sig=c2VjcmV0"


def test_nothing_of_the_sdks_text_is_printed_with_the_traceback() -> None:
    with pytest.raises(DependencyError) as raised, azure_errors(BLOBS):
        raise ServiceRequestError(f"Cannot connect to {SIGNED}")
    assert raised.value.__suppress_context__
    assert "c2VjcmV0" not in f"{raised.value}{raised.value.hints}"


def test_without_a_token_the_role_to_check_is_named() -> None:
    error = from_azure(ClientAuthenticationError("no token"), SEARCH)
    assert isinstance(error, AuthenticationError)
    assert "Search Index Data Contributor" in error.hints[0]


def test_a_late_answer_is_a_timeout() -> None:
    assert isinstance(from_azure(ServiceResponseTimeoutError("late"), SEARCH), CallTimeoutError)


def test_an_error_without_a_status_is_a_broken_connection() -> None:
    error = from_azure(HttpResponseError("half an answer"), SEARCH)
    assert type(error) is DependencyError
    assert "AZURE_SEARCH_ENDPOINT" in error.hints[0]


def test_our_own_defects_pass_untouched() -> None:
    with pytest.raises(KeyError), azure_errors(SEARCH):
        raise KeyError("a bug")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"x-ms-retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "-3"}, 0.0),
        ({}, None),
    ],
)
def test_the_wait_that_a_service_asks_for_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds


def test_the_model_endpoint_is_named_as_it_is_configured() -> None:
    azure = fake_settings(openai_base_url=None, azure_openai_endpoint="https://x.openai.azure.com")
    assert model_endpoint(azure).endpoint_setting == "AZURE_OPENAI_ENDPOINT"
    assert model_endpoint(fake_settings()).endpoint_setting == "OPENAI_BASE_URL"
