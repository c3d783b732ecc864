"""The Bot Service's public keys, by their ids. Kept for an hour; an unknown id asks for news, but not often.

What is kept outlives a failure of the service for a day: until then its tokens are still believed.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.clients.connection import Connection
from shared.clients.dependency import BOT_KEYS as SERVICE
from shared.clients.documents_wire import http_errors, not_understood
from shared.clients.translate import failed
from shared.errors import DependencyError

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from jwt import PyJWK

KEEP_S = 3600.0  # a key that is withdrawn is believed no longer than this
KEEP_ANYWAY_S = 24 * 3600.0  # the documentation's own limit
LOOK_AGAIN_S = 10.0  # strangers can make us ask no more often, whatever ids they invent
_TIMEOUT_S = 5.0  # an activity has 15 s altogether
MAX_ANSWER_BYTES = 1_000_000  # it has some 30 KB


@dataclass(frozen=True)
class SigningKey:
    """A key, and the channels whose activities it may sign; none named = any."""

    key: "PyJWK"
    endorsements: frozenset[str]


def connect_bot() -> "Connection[ClientSession]":
    """The HTTP session for keys and files of channels; made, and aiohttp and PyJWT imported, on first use."""

    def make() -> "ClientSession":
        from aiohttp import ClientSession, ClientTimeout, DummyCookieJar

        return ClientSession(
            timeout=ClientTimeout(total=None, connect=_TIMEOUT_S), cookie_jar=DummyCookieJar()
        )

    return Connection(make, ("aiohttp", "jwt.algorithms"))


class SigningKeys:
    """One set of keys."""

    def __init__(
        self,
        connection: "Connection[ClientSession]",
        url: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` counts seconds."""
        self._connection = connection
        self._url = url
        self._clock = clock
        self._keys: dict[str, SigningKey] = {}
        self._read_at = float("-inf")
        self._tried_at = float("-inf")
        self._reading = asyncio.Lock()

    async def ready(self) -> None:
        """Have imported what tokens are read with."""
        await self._connection.opened()

    async def find(self, key_id: str) -> SigningKey | None:
        """The key of this id.

        Raises:
            DependencyError: the keys cannot be had, or only such as are older than a day.
        """
        if not self._is_known(key_id):
            async with self._reading:
                if not self._is_known(key_id) and self._clock() - self._tried_at >= LOOK_AGAIN_S:
                    await self._read_if_possible()
        if self._clock() - self._read_at > KEEP_ANYWAY_S:
            raise DependencyError(f"The keys of {SERVICE.name} cannot be had.", "Try again in a moment.")
        return self._keys.get(key_id)

    def _is_known(self, key_id: str) -> bool:
        return key_id in self._keys and self._clock() - self._read_at < KEEP_S

    async def _read_if_possible(self) -> None:
        self._tried_at = self._clock()
        try:
            self._keys = await self._read()
            self._read_at = self._clock()
        except DependencyError:
            if self._clock() - self._read_at > KEEP_ANYWAY_S:
                raise

    async def _read(self) -> dict[str, SigningKey]:
        with http_errors(SERVICE):
            async with asyncio.timeout(_TIMEOUT_S):
                session = await self._connection.opened()
                async with session.get(self._url, allow_redirects=False) as response:
                    if response.status != 200:
                        raise failed(SERVICE, response.status)
                    content = await response.content.read(MAX_ANSWER_BYTES)
                    while not response.content.at_eof() and len(content) < MAX_ANSWER_BYTES:
                        content += await response.content.read(MAX_ANSWER_BYTES - len(content))
        keys = _keys_of(content)
        if not keys:
            raise not_understood(SERVICE)
        return keys


def _keys_of(content: bytes) -> dict[str, SigningKey]:
    """The keys that can be used; one that is of another kind, or broken, is left out."""
    import json

    try:
        listed = json.loads(content).get("keys", ())
    except (ValueError, AttributeError, RecursionError):
        return {}
    keys = {}
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, dict) and (key := _key(item)) is not None:
            keys[str(item["kid"])] = key
    return keys


def _key(item: Mapping[str, Any]) -> SigningKey | None:
    from jwt import PyJWK, PyJWTError

    if item.get("kty") != "RSA" or not item.get("kid"):
        return None
    try:
        key = PyJWK.from_dict(dict(item), algorithm="RS256")
    except (PyJWTError, ValueError, KeyError, TypeError):
        return None
    named = item.get("endorsements")
    return SigningKey(key, frozenset(map(str, named)) if isinstance(named, list) else frozenset())
