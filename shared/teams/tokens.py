"""Verification of the tokens that the Bot Service sends with activities. Claims are used only after the
signature has been verified.

Header and issuer are checked first, so that forged tokens cause no key requests. Decision 0023 explains why
the SDK's validator isn't used.

Source: Microsoft, "Authenticate requests from the Bot Connector service to your bot": RS256, issuer,
audience, validity with 5 minutes' skew, `serviceurl`, endorsements of the key.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn
from urllib.parse import SplitResult, urlsplit

from aiohttp import ClientSession

from shared.platform.calls import BOT_KEYS as SERVICE
from shared.platform.calls import failed
from shared.platform.connections import Connection
from shared.platform.errors import DependencyError, NotAuthenticatedError
from shared.platform.http_client import connect_http, http_errors, not_understood, read_bounded
from shared.platform.loading import load_module
from shared.platform.telemetry import get_logger

if TYPE_CHECKING:
    from jwt import PyJWK


LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")
# Maximum length of a file URL. Signed ones have about 1,500 characters plus the file name.
MAX_ADDRESS_CHARS = 8000


def address_parts(address: str) -> SplitResult | None:
    """Parse an http or https URL. Return None if parsers could disagree about its host."""
    if len(address) > MAX_ADDRESS_CHARS or not address.isascii() or not address.isprintable():
        return None
    if "\\" in address or " " in address:  # Some parsers treat a backslash as a slash.
        return None
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or "@" in parts.netloc:
        return None
    return parts


def origin(parts: SplitResult) -> tuple[str, str, int]:
    """Return the scheme, host and port of a URL."""
    return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def is_on(host: str, names: tuple[str, ...]) -> bool:
    """Return whether a host matches one of `names`. A name with a leading dot matches all subdomains."""
    return any(host.endswith(name) if name.startswith(".") else host == name for name in names)


def is_service(parts: SplitResult, hosts: tuple[str, ...]) -> bool:
    """Return whether a URL belongs to one of these Bot Service hosts, so that the bot's token may be sent to
    it.
    """
    scheme, host, port = origin(parts)
    return scheme == "https" and port == 443 and is_on(host, hosts)


def is_loopback(parts: SplitResult) -> bool:
    """Return whether a URL points to this machine."""
    return parts.hostname in LOOPBACK_HOSTS


CloudName = Literal["public", "usgov"]


@dataclass(frozen=True)
class BotCloud:
    """Token issuer, signing keys and channel hosts of the Bot Service in one Azure cloud.

    Attributes:
        issuer: issuer of incoming tokens, and audience of our own.
        keys_url: where the signing keys are published.
        hosts: channel hosts; a leading dot matches subdomains.
    """

    issuer: str
    keys_url: str
    hosts: tuple[str, ...]


CLOUDS: dict[CloudName, BotCloud] = {
    "public": BotCloud(
        issuer="https://api.botframework.com",
        keys_url="https://login.botframework.com/v1/.well-known/keys",
        hosts=(".botframework.com", ".teams.microsoft.com", "smba.trafficmanager.net"),
    ),
    "usgov": BotCloud(
        issuer="https://api.botframework.us",
        keys_url="https://login.botframework.azure.us/v1/.well-known/keys",
        hosts=(".botframework.us", ".botframework.azure.us", ".teams.microsoft.us"),
    ),
}

KEEP_S = 3600.0  # keys are downloaded again after an hour, so that withdrawn ones expire
KEEP_ANYWAY_S = 24 * 3600.0  # if downloads fail; Microsoft's documentation allows a day
# Minimum time between downloads of the keys. Tokens with made-up key ids also cause them.
LOOK_AGAIN_S = 10.0
# Time limit of one download. Channels wait 15 s for the response to an activity.
_TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 1_000_000  # the key set has about 30 KB today


@dataclass(frozen=True)
class SigningKey:
    """A public key for verifying tokens, and the channels it is endorsed for; empty = any channel."""

    key: "PyJWK"
    endorsements: frozenset[str]


def connect_bot() -> Connection[ClientSession]:
    """Return a connection for downloading signing keys and files. aiohttp and PyJWT are imported on first
    use.
    """
    return connect_http(_TIMEOUT_S, None, "jwt")


class SigningKeys:
    """Cache of the Bot Service signing keys, downloaded when needed."""

    def __init__(
        self,
        connection: Connection[ClientSession],
        url: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create an empty cache. `clock` returns seconds and never runs backwards."""
        self._connection = connection
        self._url = url
        self._clock = clock
        self._keys: dict[str, SigningKey] = {}
        self._read_at = float("-inf")
        self._tried_at = float("-inf")
        self._reading = asyncio.Lock()

    async def ready(self) -> None:
        """Import the modules needed for verification, so that the first request isn't delayed."""
        await self._connection.opened()

    async def find(self, key_id: str) -> SigningKey | None:
        """Return the signing key with this id, or None if it is unknown. Expired keys are downloaded first.

        Raises:
            DependencyError: the keys are unavailable and cached ones are older than a day.
        """
        if not self._is_known(key_id):
            async with self._reading:
                if not self._is_known(key_id) and self._clock() - self._tried_at >= LOOK_AGAIN_S:
                    await self._read_if_possible()
        if self._clock() - self._read_at > KEEP_ANYWAY_S:
            raise DependencyError(
                f"The keys of {SERVICE.name} could not be fetched.", "Try again in a moment."
            )
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
                    parts = response.content.iter_any()
                    content = await read_bounded(parts, MAX_ANSWER_BYTES, not_understood(SERVICE))
        keys = _keys_of(content)
        if not keys:
            raise not_understood(SERVICE)
        return keys


def _keys_of(content: bytes) -> dict[str, SigningKey]:
    """Parse a JSON Web Key Set into keys by id. Unsupported and malformed keys are skipped."""
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
    jwt = load_module("jwt")

    if item.get("kty") != "RSA" or not item.get("kid"):
        return None
    try:
        key = jwt.PyJWK.from_dict(dict(item), algorithm="RS256")
    except (jwt.PyJWTError, ValueError, KeyError, TypeError):
        return None
    endorsements = item.get("endorsements")
    return SigningKey(
        key, frozenset(map(str, endorsements)) if isinstance(endorsements, list) else frozenset()
    )


_SKEW_S = 300
_MAX_TOKEN_CHARS = 16_000  # Tokens have about 1,500 characters today.


@dataclass(frozen=True)
class ChannelToken:
    """The verified content of a token: the channels its key is endorsed for (empty = any) and the service
    URL.
    """

    service_url: str
    endorsements: frozenset[str]


class ChannelTokens:
    """Verifier of Bot Service tokens for one bot."""

    def __init__(self, keys: SigningKeys, app_id: str, issuer: str) -> None:
        """Create a verifier for tokens addressed to the bot `app_id` and issued by `issuer`, the Bot Service
        of its cloud.
        """
        self._keys = keys
        self._issuer = issuer
        self._app_id = app_id.casefold()

    async def verify(self, authorization: str | None) -> ChannelToken:
        """Verify the bearer token of an Authorization header and return its verified content.

        Raises:
            NotAuthenticatedError: the token is missing or invalid. Only the log says why.
            DependencyError: the Bot Service's keys are unavailable.
        """
        token = _bearer(authorization)
        await self._keys.ready()
        key = await self._keys.find(_key_id(token, self._issuer))
        if key is None:
            refuse("unknown_key")
        claims = _claims(token, key, self._issuer)
        audience, service_url = claims.get("aud"), claims.get("serviceurl")
        if not isinstance(audience, str) or audience.casefold() != self._app_id:
            refuse("audience")  # A token with several audiences is not meant for this bot alone.
        if not isinstance(service_url, str) or not service_url:
            refuse("no_service_url")
        return ChannelToken(service_url, key.endorsements)


def refuse(reason: str) -> NoReturn:
    """Log why a token was rejected, and raise an error that doesn't reveal the reason to the sender.

    Raises:
        NotAuthenticatedError: always, with a message that gives no clue to attackers.
    """
    get_logger().warning("bot.token_refused", reason=reason)
    raise NotAuthenticatedError(
        "The activity has no valid Bot Service token for this bot.",
        "Write to the bot in its channel.",
    )


def _bearer(authorization: str | None) -> str:
    scheme, _, token = (authorization or "").partition(" ")
    if not token:
        refuse("no_token")
    if scheme.lower() != "bearer" or len(token) > _MAX_TOKEN_CHARS:
        refuse("not_a_token")
    return token


def _key_id(token: str, issuer: str) -> str:
    """Return the id of the signing key that a token names. Raise an error if `issuer` didn't issue the
    token.
    """
    jwt = load_module("jwt")

    try:
        unproved: Mapping[str, Any] = jwt.decode_complete(token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, ValueError, RecursionError):
        refuse("not_a_token")
    header, payload = unproved["header"], unproved["payload"]
    if header.get("alg") != "RS256":
        refuse("algorithm")
    # Not even the issuer of the bot's own tenant is accepted, because any app there could impersonate a user.
    if payload.get("iss") != issuer:
        refuse("issuer")
    key_id = header.get("kid")
    if not isinstance(key_id, str) or not key_id:
        refuse("no_key_id")
    return key_id


def _claims(token: str, key: SigningKey, issuer: str) -> dict[str, Any]:
    jwt = load_module("jwt")

    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            key.key,
            algorithms=["RS256"],
            issuer=issuer,
            leeway=_SKEW_S,
            options={"require": ["exp", "iss", "aud"], "verify_aud": False},
        )
    except jwt.ExpiredSignatureError:
        refuse("expired")
    except (jwt.InvalidTokenError, ValueError):
        refuse("not_proved")
    return claims
