"""Parts of the clients that use aiohttp without an SDK: bounded answers, their models, errors."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from pydantic import BaseModel, ConfigDict

from shared.platform.calls import Dependency, timed_out, unreachable
from shared.platform.errors import DependencyError, GroundworkError


class Wire(BaseModel):
    """A part of a service's answer: the fields that are used; others come and go with its versions."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True, hide_input_in_errors=True)


def folded(text: str) -> str:
    """`text` with single spaces."""
    return " ".join(text.split())


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
