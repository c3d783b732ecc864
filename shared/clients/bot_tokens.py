"""Tokens of the Bot Service. What a token says is believed only after its signature.

Its header and issuer are looked at before, so that a stranger's token makes us ask nobody for keys. Why not
the SDK's validator: decision 0023.

Source: Microsoft, "Authenticate requests from the Bot Connector service to your bot": RS256, issuer,
audience, validity with 5 minutes' skew, `serviceurl`, endorsements of the key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from shared.clients.bot_keys import SigningKey, SigningKeys
from shared.errors import NotAuthenticatedError
from shared.telemetry import get_logger

_SKEW_S = 300
_MAX_TOKEN_CHARS = 16_000  # they have some 1,500


@dataclass(frozen=True)
class ChannelToken:
    """What a token proves: the channels for which its key stands (none named = any), and their address."""

    service_url: str
    endorsements: frozenset[str]


class ChannelTokens:
    """Believes the Bot Service, for one bot."""

    def __init__(self, keys: SigningKeys, app_id: str, issuer: str) -> None:
        """`app_id` is ours: tokens for others are not for us. `issuer`: the Bot Service of our cloud."""
        self._keys = keys
        self._issuer = issuer
        self._app_id = app_id.casefold()

    async def believed(self, authorization: str | None) -> ChannelToken:
        """What the token of an Authorization header proves.

        Raises:
            NotAuthenticatedError: no token, or any fault in it; which one is logged, and told to nobody.
            DependencyError: the Bot Service's keys cannot be had.
        """
        token = _bearer(authorization)
        await self._keys.ready()
        key = await self._keys.find(_key_id(token, self._issuer))
        if key is None:
            refuse("unknown_key")
        claims = _claims(token, key, self._issuer)
        audience, service_url = claims.get("aud"), claims.get("serviceurl")
        if not isinstance(audience, str) or audience.casefold() != self._app_id:
            refuse("audience")  # several audiences: a token that is not for us alone
        if not isinstance(service_url, str) or not service_url:
            refuse("no_service_url")
        return ChannelToken(service_url, key.endorsements)


def refuse(reason: str) -> NoReturn:
    """
    Raises:
        NotAuthenticatedError: always; its text does not say what to try next.
    """
    get_logger().warning("bot.token_refused", reason=reason)
    raise NotAuthenticatedError(
        "The activity carries no valid token of the Bot Service for this bot.",
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
    """The id of the key that a token of the Bot Service is signed with; any other token is refused here."""
    import jwt

    try:
        unproved: Mapping[str, Any] = jwt.decode_complete(token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, ValueError, RecursionError):
        refuse("not_a_token")
    header, payload = unproved["header"], unproved["payload"]
    if header.get("alg") != "RS256":
        refuse("algorithm")
    if payload.get("iss") != issuer:  # Entra's of our own tenant, too: any app there could name any person
        refuse("issuer")
    key_id = header.get("kid")
    if not isinstance(key_id, str) or not key_id:
        refuse("no_key_id")
    return key_id


def _claims(token: str, key: SigningKey, issuer: str) -> dict[str, Any]:
    import jwt

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
