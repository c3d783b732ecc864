"""Helpers for calling HTTP services without an SDK: sessions, bounded responses and error translation."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar
from pydantic import BaseModel, ConfigDict

from shared.platform.calls import Dependency, timed_out, unreachable
from shared.platform.connections import Connection
from shared.platform.errors import DependencyError, GroundworkError


class Wire(BaseModel):
    """Base class of response models. Unknown fields are ignored, because services may add some."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True, hide_input_in_errors=True)


def collapse_spaces(text: str) -> str:
    """Strip the text and replace each run of white space by a single space."""
    return " ".join(text.split())


def connect_http(
    connect_timeout_s: float, headers: Mapping[str, str] | None = None, *modules: str
) -> Connection[ClientSession]:
    """Return a lazily created HTTP session without a total timeout: each call must set its own deadline.

    The session ignores cookies, because they could link requests of one user to those of another.

    Args:
        modules: slow imports that the calls need; `Connection.opened` loads them in a thread.
    """

    def make() -> ClientSession:
        timeout = ClientTimeout(total=None, connect=connect_timeout_s)
        return ClientSession(headers=headers, timeout=timeout, cookie_jar=DummyCookieJar())

    return Connection(make, modules)


@contextmanager
def http_errors(dependency: Dependency) -> Iterator[None]:
    """Translate aiohttp exceptions into the app's errors. The originals are suppressed, because they contain
    URLs and headers.
    """
    try:
        yield
    except TimeoutError:
        raise timed_out(dependency) from None
    except (ClientError, OSError):
        raise unreachable(dependency) from None


async def read_bounded(parts: AsyncIterator[bytes], max_bytes: int, too_large: GroundworkError) -> bytes:
    """Return the whole response body. Raise the error `too_large` if it exceeds `max_bytes`."""
    answer = bytearray()
    async for part in parts:
        answer += part
        if len(answer) > max_bytes:
            raise too_large
    return bytes(answer)


def not_understood(dependency: Dependency) -> DependencyError:
    """Return the error for a response that could not be parsed."""
    return DependencyError(
        f"The response from {dependency.name} is invalid.",
        f"Check {dependency.endpoint_setting} and the version of the service.",
    )
