"""A Bot Service for tests: its keys, tokens and activities, and the app's route with an inbox that trusts
it.
"""

import base64
import json
import time
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from jwt.algorithms import RSAAlgorithm

from shared.platform.settings import Settings
from shared.teams.inbox import ChannelInbox
from shared.teams.models import BotActivity
from shared.teams.tokens import CLOUDS, ChannelTokens, SigningKeys
from shared.wiring import Services
from tests.contract.clients.scripted_server import Answer
from tests.fakes.services import fake_services, fake_settings
from tests.unit.functions.http_app import make_app

APP_ID = "11111111-2222-3333-4444-555555555555"
TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"
PERSON = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
SERVICE = "https://smba.trafficmanager.net/emea/"
KEY_ID = "key-1"
THEIRS = "the Bot Service's key"


@cache
def key(name: str) -> rsa.RSAPrivateKey:
    """Return a key, always the same for a name, because generating one takes 0.1 s."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def key_list(*endorsements: str, key_id: str = KEY_ID) -> bytes:
    """Return the Bot Service's published list of keys, as JSON."""
    public = json.loads(RSAAlgorithm.to_jwk(key(THEIRS).public_key()))
    listed = {**public, "use": "sig", "kid": key_id, "x5t": key_id}
    if endorsements:
        listed["endorsements"] = list(endorsements)
    return json.dumps({"keys": [listed]}).encode()


def claims(**changes: Any) -> dict[str, Any]:
    """Return the claims of a Bot Service token; a claim changed to None is omitted."""
    now = int(time.time())
    defaults = {
        "iss": CLOUDS["public"].issuer,
        "aud": APP_ID,
        "nbf": now - 60,
        "exp": now + 3600,
        "serviceurl": SERVICE,
    }
    return {name: value for name, value in {**defaults, **changes}.items() if value is not None}


def signed(headers: dict[str, Any] | None = None, by: str = THEIRS, **changes: Any) -> str:
    """Return the Authorization header of an activity; a header changed to None is omitted.

    The token is composed by hand, because libraries refuse to create the invalid tokens that tests need.
    """
    token_headers = {"alg": "RS256", "typ": "JWT", "kid": KEY_ID, **(headers or {})}
    signing_input = _encoded(
        {name: value for name, value in token_headers.items() if value is not None}, claims(**changes)
    )
    signature = key(by).sign(signing_input.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"Bearer {signing_input}.{_base64(signature)}"


def unsigned(header: dict[str, Any], signature: bytes = b"", **changes: Any) -> str:
    """Return a token without a valid signature."""
    return f"Bearer {_encoded(header, claims(**changes))}.{_base64(signature)}"


def _encoded(*parts: dict[str, Any]) -> str:
    return ".".join(_base64(json.dumps(part).encode()) for part in parts)


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def teams_message(**changes: Any) -> dict[str, Any]:
    """Return a Teams message in the format of the Bot Service. A field changed to None is omitted."""
    defaults: dict[str, Any] = {
        "type": "message",
        "id": "1700000000000",
        "timestamp": "2026-01-02T03:04:05.678Z",
        "channelId": "msteams",
        "serviceUrl": SERVICE,
        "from": {"id": "29:1abc", "name": "Ada", "aadObjectId": PERSON},
        "conversation": {"id": "a:1xyz", "conversationType": "personal", "tenantId": TENANT},
        "recipient": {"id": "28:bot", "name": "Groundwork"},
        "text": "What is the pressure?",
        "textFormat": "plain",
        "locale": "de-DE",
        "entities": [{"type": "clientInfo", "locale": "de-DE", "platform": "Web"}],
        "channelData": {"tenant": {"id": TENANT}},
    }
    return {name: value for name, value in {**defaults, **changes}.items() if value is not None}


@dataclass
class Messages:
    """The route POST /api/messages, with the activities that it accepted."""

    services: Services
    handled: list[BotActivity] = field(default_factory=list)
    answer: dict[str, Any] | None = None

    async def post(
        self,
        activity: Any = None,
        authorization: str | None = None,
        *,
        peer: str = "127.0.0.1",
        host: str = "127.0.0.1",
        headers: dict[str, str] | None = None,
        more: list[tuple[str, str]] | None = None,
    ) -> httpx.Response:
        """Send an activity. Bytes are sent unchanged, anything else as JSON."""
        body = activity if isinstance(activity, bytes) else json.dumps(activity or teams_message()).encode()
        request_headers = {"Content-Type": "application/json; charset=utf-8", **(headers or {})}
        if authorization is not None:
            request_headers["Authorization"] = authorization
        transport = httpx.ASGITransport(make_app(None), client=(peer, 50000))
        async with httpx.AsyncClient(
            transport=transport, base_url=f"http://{host}:7071/api", timeout=60
        ) as channel:
            return await channel.post(
                "/messages", content=body, headers=[*request_headers.items(), *(more or ())]
            )

    def has_changed_nothing(self) -> bool:
        """Return whether nothing was stored or started, and not even a table or container was created."""
        return not self.handled and not self.services.blobs.containers  # type: ignore[attr-defined]


def messages(monkeypatch: pytest.MonkeyPatch, services: Services) -> Messages:
    """Return the route over these services. Accepted activities are recorded instead of handled."""
    route = Messages(services)

    async def handle(activity: BotActivity, services: Services, starter: object) -> dict[str, Any] | None:
        route.handled.append(activity)
        return route.answer

    monkeypatch.setattr("functions.teams.handle", handle)
    monkeypatch.setattr("shared.wiring.get_services", lambda: services)
    return route


def bot_settings(**changes: Any) -> Settings:
    return fake_settings(**{"bot_app_id": APP_ID.upper(), "bot_tenant_id": TENANT, **changes})


def bot_services(keys: SigningKeys | None, settings: Settings) -> Services:
    issuer = CLOUDS[settings.bot.cloud].issuer
    tokens = ChannelTokens(keys, settings.bot.app_id, issuer) if keys and settings.bot.app_id else None
    return fake_services(settings=settings, bot_inbox=ChannelInbox(settings, tokens))


def key_answer(*endorsements: str) -> Answer:
    return Answer(body=key_list(*endorsements))
