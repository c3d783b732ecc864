"""Parts of the clients that use aiohttp without an SDK: bounded answers, their models, errors."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from shared.platform.calls import Dependency, timed_out, unreachable
from shared.platform.connections import Connection
from shared.platform.errors import DependencyError, GroundworkError

if TYPE_CHECKING:
    from aiohttp import ClientSession


class Wire(BaseModel):
    """A part of a service's answer: the fields that are used; others come and go with its versions."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True, hide_input_in_errors=True)


def folded(text: str) -> str:
    """`text` with single spaces."""
    return " ".join(text.split())


def connect_http(
    connect_timeout_s: float, headers: Mapping[str, str] | None = None, *modules: str
) -> "Connection[ClientSession]":
    """An HTTP session whose calls each have their own deadline; made, and aiohttp imported, on first use.

    It keeps no cookies: they would tell that requests come from the same asker.

    Args:
        modules: further ones that its calls import, and that take long.
    """

    def make() -> "ClientSession":
        from aiohttp import ClientSession, ClientTimeout, DummyCookieJar

        timeout = ClientTimeout(total=None, connect=connect_timeout_s)
        return ClientSession(headers=headers, timeout=timeout, cookie_jar=DummyCookieJar())

    return Connection(make, ("aiohttp", *modules))


@contextmanager
def http_errors(dependency: Dependency) -> Iterator[None]:
    """aiohttp's exceptions as ours, `from None`: they carry addresses and headers."""
    from aiohttp import ClientError

    try:
        yield
    except TimeoutError:
        raise timed_out(dependency) from None
    except (ClientError, OSError):
        raise unreachable(dependency) from None


async def read_bounded(parts: AsyncIterator[bytes], max_bytes: int, too_large: GroundworkError) -> bytes:
    """The whole answer; `too_large` is raised when it has more than `max_bytes`."""
    answer = bytearray()
    async for part in parts:
        answer += part
        if len(answer) > max_bytes:
            raise too_large
    return bytes(answer)


def not_understood(dependency: Dependency) -> DependencyError:
    """The service answered with something else than its protocol says."""
    return DependencyError(
        f"The response of {dependency.name} is not understood.",
        f"Check {dependency.endpoint_setting}, and the service's version.",
    )
