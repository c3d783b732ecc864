"""Client of a model endpoint (Azure OpenAI or a compatible one), and translation of its errors."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from json import JSONDecodeError
from typing import TYPE_CHECKING

from shared.platform.calls import (
    Dependency,
    error_of_status,
    failed,
    rate_limited,
    timed_out,
    unreachable,
)
from shared.platform.connections import IDENTITY_SDK, Connection, Credentials, credential_modules
from shared.platform.errors import (
    ConfigurationError,
    DependencyError,
    GroundworkError,
    InvalidQueryError,
    ModelFixableError,
    PayloadTooLargeError,
)
from shared.platform.loading import load, load_module
from shared.platform.settings import Settings
from shared.platform.telemetry import redact

if TYPE_CHECKING:
    from openai import APIError, APIStatusError, AsyncOpenAI, OpenAIError


_AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"
_AZURE_V1 = "/openai/v1"
_NO_KEY = "none"  # the SDK requires a key, which servers without keys ignore


def connect_model(settings: Settings, credentials: Credentials) -> "Connection[AsyncOpenAI]":
    """Return a lazy connection to the model endpoint. Azure OpenAI is used through its v1 API, which is
    compatible with OpenAI's.
    """
    models = settings.models

    def make() -> "AsyncOpenAI":
        make_client: type[AsyncOpenAI] = load("openai", "AsyncOpenAI")
        # Disable SDK retries, which would exceed the time limit of the call; calls.py retries instead.
        if models.in_azure:
            endpoint = (models.azure_openai_endpoint or "").rstrip("/").removesuffix(_AZURE_V1) + _AZURE_V1
            key = models.azure_openai_api_key or _tokens(endpoint, credentials)
            return make_client(base_url=endpoint, api_key=key, max_retries=0)
        return make_client(
            base_url=models.openai_base_url, api_key=models.openai_api_key or _NO_KEY, max_retries=0
        )

    credential = credential_modules(models.azure_openai_api_key) if models.in_azure else ()
    return Connection(make, ("openai", *credential))


def _tokens(endpoint: str, credentials: Credentials) -> Callable[[], Awaitable[str]]:
    provider: Callable[[], Awaitable[str]] = load(IDENTITY_SDK, "get_bearer_token_provider")(
        credentials.identity(endpoint, "AZURE_OPENAI_API_KEY"), _AZURE_SCOPE
    )
    return provider


_MAX_MESSAGE_CHARS = 300
_TOO_LONG = frozenset({"context_length_exceeded", "string_above_max_length"})
_OUT_OF_QUOTA = frozenset({"rate_limit_exceeded", "insufficient_quota"})


@contextmanager
def model_errors(dependency: Dependency, model_setting: str) -> Iterator[None]:
    """Translate exceptions of the openai SDK raised in the block into the app's errors. `model_setting` is
    the variable that names the model.
    """
    try:
        yield
    # Already an error of the app; must come first, because a `ConfigurationError` is also a `ValueError`.
    except GroundworkError:
        raise
    except load("openai", "OpenAIError") as error:
        raise from_openai(error, dependency, model_setting) from None
    except JSONDecodeError:  # raised by the SDK if the response is truncated or isn't JSON
        raise unreachable(dependency) from None
    except TimeoutError:
        raise timed_out(dependency) from None
    except (AttributeError, LookupError, TypeError, ValueError):
        # The SDK doesn't validate responses, so a malformed body raises one of these errors when it is
        # accessed.
        raise protocol_error(dependency) from None


def from_openai(error: "OpenAIError", dependency: Dependency, model_setting: str) -> GroundworkError:
    """Return the app's error for an exception of the SDK."""
    openai = load_module("openai")
    match error:
        case openai.APITimeoutError():
            return timed_out(dependency)
        case openai.APIStatusError():
            return _from_status(error, dependency, model_setting)
        case openai.APIError() if not isinstance(error, openai.APIConnectionError):
            return _from_stream(error, dependency)
    return unreachable(dependency)


def protocol_error(dependency: Dependency) -> DependencyError:
    """Return the error for a response with status 200 that doesn't follow the protocol."""
    return DependencyError(
        f"The answer of {dependency.name} does not follow the OpenAI protocol.",
        f"Check {dependency.endpoint_setting}: it must be an OpenAI-compatible API; most end in /v1.",
    )


def content_filter_error() -> ModelFixableError:
    """Return the error for an answer that was stopped by the content filter of the endpoint."""
    return ModelFixableError("The model's content filter stopped the answer.", "Rephrase the question.")


def _from_status(error: "APIStatusError", dependency: Dependency, model_setting: str) -> GroundworkError:
    status = error.status_code
    if status == 404:
        return ConfigurationError(
            f"{dependency.name.capitalize()} does not have the model.",
            f"Check {model_setting}: the deployment name in Azure, otherwise the model name; "
            f"also check the path of {dependency.endpoint_setting}.",
        )
    if status in (400, 413, 422):
        return _bad_request(error, dependency)
    return error_of_status(dependency, status, error.response.headers)


def _bad_request(error: "APIStatusError", dependency: Dependency) -> GroundworkError:
    if error.status_code == 413 or error.code in _TOO_LONG:
        return PayloadTooLargeError(f"The prompt is too long for {dependency.name}.", "Ask about less.")
    if error.code == "content_filter":
        return InvalidQueryError("The model's content filter refused the question.", "Rephrase it.")
    message = " ".join(redact(error.message).split())[:_MAX_MESSAGE_CHARS]
    return InvalidQueryError(f"{dependency.name.capitalize()} refused the request: {message}")


def _from_stream(error: "APIError", dependency: Dependency) -> GroundworkError:
    """Return the app's error for an error event in a stream. Its HTTP status is 200, so the body decides."""
    if error.code in _OUT_OF_QUOTA or error.type in _OUT_OF_QUOTA:
        return rate_limited(dependency, {})
    if error.code == "content_filter":
        return content_filter_error()
    return failed(dependency, 500)
