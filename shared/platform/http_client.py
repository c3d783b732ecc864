"""Helpers for aiohttp clients of services without an SDK: bounded responses, their models and errors."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar
from pydantic import BaseModel, ConfigDict

from shared.platform.calls import Dependency, timed_out, unreachable
from shared.platform.connections import Connection
from shared.platform.errors import DependencyError, GroundworkError


class Wire(BaseModel):
    """Base of response models. Undeclared fields are ignored, because services add and remove them."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True, hide_input_in_errors=True)


def folded(text: str) -> str:
    """Collapse white space to single blanks."""
    return " ".join(text.split())


def connect_http(
    connect_timeout_s: float, headers: Mapping[str, str] | None = None, *modules: str
) -> Connection[ClientSession]:
    """Return an HTTP session, created on first use, in which each call sets its own deadline.

    It stores no cookies, which would link requests to one user.

    Args:
        modules: modules that its calls load, which is slow.
    """

    def make() -> ClientSession:
        timeout = ClientTimeout(total=None, connect=connect_timeout_s)
        return ClientSession(headers=headers, timeout=timeout, cookie_jar=DummyCookieJar())

    return Connection(make, modules)


@contextmanager
def http_errors(dependency: Dependency) -> Iterator[None]:
    """Translate aiohttp's exceptions, `from None` because they carry addresses and headers."""
    try:
        yield
    except TimeoutError:
        raise timed_out(dependency) from None
    except (ClientError, OSError):
        raise unreachable(dependency) from None


async def read_bounded(parts: AsyncIterator[bytes], max_bytes: int, too_large: GroundworkError) -> bytes:
    """Return the whole response. Raise `too_large` if it exceeds `max_bytes`."""
    answer = bytearray()
    async for part in parts:
        answer += part
        if len(answer) > max_bytes:
            raise too_large
    return bytes(answer)


def not_understood(dependency: Dependency) -> DependencyError:
    """Return the error for a response that doesn't follow the service's protocol."""
    return DependencyError(
        f"The response of {dependency.name} is invalid.",
        f"Check {dependency.endpoint_setting}, and the service's version.",
    )
