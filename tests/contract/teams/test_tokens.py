"""Tokens of the Bot Service: the accepted tokens, and the keys that verify them."""

import asyncio
import json
import logging
import time
from typing import Any

import jwt
import pytest
from jwt.algorithms import RSAAlgorithm
from microsoft_agents.hosting.core.authorization import (
    AgentAuthConfiguration,
    JwtTokenValidator,
)

from shared.platform.errors import DependencyError
from shared.teams.tokens import KEEP_ANYWAY_S, KEEP_S, LOOK_AGAIN_S, MAX_ANSWER_BYTES
from tests.contract.clients.scripted_server import Answer
from tests.contract.teams.bot_fixture import keys_from, teams_app
from tests.contract.teams.signing import (
    APP_ID,
    KEY_ID,
    PERSON,
    SERVICE,
    TENANT,
    THEIRS,
    Messages,
    bot_services,
    bot_settings,
    claims,
    key,
    key_answer,
    key_list,
    messages,
    signed,
    teams_message,
    unsigned,
)
from tests.unit.functions.http_app import problem_of

__all__ = ["teams_app"]

pytestmark = [pytest.mark.contract, pytest.mark.attack("identity")]

RS256 = {"alg": "RS256", "typ": "JWT", "kid": "key-1"}

OWN_TENANT = f"https://login.microsoftonline.com/{TENANT}/v2.0"

PUBLIC = json.loads(RSAAlgorithm.to_jwk(key(THEIRS).public_key()))


def now() -> int:
    """Return the current time; called in each test, because tests run minutes after their collection."""
    return int(time.time())


def _with_other_claims() -> str:
    header, _, signature = signed().removeprefix("Bearer ").split(".")
    claimed = unsigned(RS256, serviceurl=SERVICE, exp=now() + 9999).split(".")[1]
    return f"Bearer {header}.{claimed}.{signature}"


REFUSED = {
    "no header": lambda: None,
    "an empty header": lambda: "",
    "another scheme": lambda: signed().replace("Bearer", "Basic"),
    "no token after the scheme": lambda: "Bearer ",
    "two tokens": lambda: f"{signed()} {signed()}",
    "garbage": lambda: "Bearer not.a.token",
    "only a header": lambda: "Bearer e30",
    "a huge token": lambda: signed(padding="x" * 20_000),
    "deep claims": lambda: unsigned(RS256, b"x", deep=json.loads("[" * 500 + "]" * 500)),
    "another audience": lambda: signed(aud="99999999-2222-3333-4444-555555555555"),
    "no audience": lambda: signed(aud=None),
    "audience as array": lambda: signed(aud=[APP_ID]),
    "audience as object": lambda: signed(aud={"id": APP_ID}),
    "expired 10 minutes": lambda: signed(exp=now() - 600),
    "no expiry": lambda: signed(exp=None),
    "expiry as text": lambda: signed(exp="never"),
    "not valid yet": lambda: signed(nbf=now() + 3600),
    "issued in the future": lambda: signed(iat=now() + 3600),
    "another key of the same id": lambda: signed(by="a stranger"),
    "an unknown key id": lambda: signed({"kid": "key-2"}),
    "no key id": lambda: signed({"kid": None}),
    "an empty key id": lambda: signed({"kid": ""}),
    "key id as number": lambda: unsigned({**RS256, "kid": 1}, b"x"),
    "signed with the public key": lambda: (
        "Bearer " + jwt.encode(claims(), PUBLIC["n"], "HS256", {"kid": "key-1"})
    ),
    "algorithm none": lambda: unsigned({"alg": "none", "kid": "key-1"}),
    "algorithm NONE": lambda: unsigned({"alg": "NONE", "kid": "key-1"}, b"x"),
    "RS256 without signature": lambda: unsigned(RS256),
    "another algorithm": lambda: "Bearer " + jwt.encode(claims(), key(THEIRS), "RS512", {"kid": "key-1"}),
    "a key of its own": lambda: signed({"jwk": PUBLIC, "jku": "https://evil.example"}, by="a stranger"),
    "a critical extension": lambda: signed({"crit": ["urn:x"], "urn:x": True}),
    "changed claims": _with_other_claims,
    "no issuer": lambda: signed(iss=None),
    "an unknown issuer": lambda: signed(iss="https://evil.example"),
    "issuer as array": lambda: signed(iss=["https://api.botframework.com"]),
    "another tenant's Entra token": lambda: signed(
        iss="https://sts.windows.net/99999999-86f1-41af-91ab-2d7cd011db47/",
        tid="99999999-86f1-41af-91ab-2d7cd011db47",
    ),
    "our own tenant's Entra token": lambda: signed(iss=OWN_TENANT, tid=TENANT),
    "the government's cloud": lambda: signed(iss="https://api.botframework.us"),
    "no service url": lambda: signed(serviceurl=None),
    "an empty service url": lambda: signed(serviceurl=""),
    "service url as array": lambda: signed(serviceurl=[SERVICE]),
    "another service url": lambda: signed(serviceurl="https://europe.webchat.botframework.com/"),
    "a service url that begins alike": lambda: signed(
        serviceurl="https://smba.trafficmanager.net.evil.example/"
    ),
    "another port": lambda: signed(serviceurl="https://smba.trafficmanager.net:8443/emea/"),
    "not https": lambda: signed(serviceurl="http://smba.trafficmanager.net/emea/"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_is_no_valid_token_for_us_is_refused_and_changes_nothing(
    teams_app: Messages, case: str
) -> None:
    answered = await teams_app.post(authorization=REFUSED[case]())
    assert problem_of(answered) == (401, "NotAuthenticatedError")
    assert teams_app.has_changed_nothing()
    # The response must not reveal which check failed.
    assert not any(word in answered.text.lower() for word in ("expired", "audience", "issuer", "kid"))


ACCEPTED = {
    "as it is": signed,
    "upper case": lambda: signed(aud=APP_ID.upper()),
    "skew": lambda: signed(exp=now() - 240),
    "no nbf": lambda: signed(nbf=None, iat=now() - 5),
    "same host": lambda: signed(serviceurl="https://SMBA.trafficmanager.net:443"),
    "scheme in lower case": lambda: signed().replace("Bearer", "bearer"),
}


@pytest.mark.parametrize("case", ACCEPTED)
async def test_the_bot_services_own_token_is_accepted(teams_app: Messages, case: str) -> None:
    answered = await teams_app.post(authorization=ACCEPTED[case]())
    assert (answered.status_code, answered.content) == (202, b"")
    assert [activity.kind for activity in teams_app.handled] == ["message"]


async def test_two_tokens_in_two_headers_are_refused(teams_app: Messages) -> None:
    answered = await teams_app.post(authorization=signed(), more=[("Authorization", signed(exp=now() + 60))])
    assert answered.status_code == 401
    assert teams_app.has_changed_nothing()


@pytest.mark.parametrize(
    ("activity", "status"),
    [
        (b"", 400),
        (b"not json", 400),
        (teams_message(serviceUrl=None), 400),
        (teams_message(serviceUrl=""), 400),
        (teams_message(serviceUrl="somewhere"), 400),
        (teams_message(serviceUrl="https://evil.example/"), 401),
        (teams_message(serviceUrl="https://smba.trafficmanager.net@evil.example/"), 400),
        (teams_message(serviceUrl="https://smba.trafficmanager.net\\@evil.example/"), 400),
        (teams_message(serviceUrl="http://169.254.169.254/"), 401),
        (teams_message(channelData={"tenant": {"id": "99999999-86f1-41af-91ab-2d7cd011db47"}}), 403),
        (teams_message(channelData={}), 403),
        (teams_message(channelData={"tenant": TENANT}), 403),
        (teams_message(channelData=None), 403),
        (teams_message(conversation={"id": "a", "conversationType": "personal"}), 403),
        (teams_message(conversation={"id": "a", "tenantId": "other"}), 403),
        (teams_message(channelId="directline"), 401),
    ],
)
async def test_with_a_valid_token_the_activity_must_fit_it(
    teams_app: Messages, activity: Any, status: int
) -> None:
    answered = await teams_app.post(activity, signed())
    assert problem_of(answered)[0] == status
    assert teams_app.has_changed_nothing()


@pytest.mark.attack("outgoing addresses")
@pytest.mark.parametrize("service", ["https://10.0.0.1/", "https://evil.example/", "http://127.0.0.1/"])
async def test_a_token_for_an_address_that_is_not_the_bot_services_is_refused(
    teams_app: Messages, service: str
) -> None:
    answered = await teams_app.post(teams_message(serviceUrl=service), signed(serviceurl=service))
    assert answered.status_code == 401
    assert teams_app.has_changed_nothing()


async def test_a_key_without_endorsements_stands_for_every_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    async with keys_from(key_answer()) as (keys, _):
        app = messages(monkeypatch, bot_services(keys, bot_settings()))
        assert (await app.post(authorization=signed())).status_code == 202


async def test_who_is_in_teams_is_believed_and_who_says_so_elsewhere_is_not(teams_app: Messages) -> None:
    web = "https://webchat.botframework.com/"
    await teams_app.post(teams_message(), signed())
    await teams_app.post(teams_message(channelId="webchat", serviceUrl=web), signed(serviceurl=web))
    in_teams, elsewhere = teams_app.handled
    assert in_teams.kind == elsewhere.kind == "message"
    assert (in_teams.sender.object_id, in_teams.sender.tenant_id) == (PERSON, TENANT)
    assert (elsewhere.sender.object_id, elsewhere.sender.tenant_id) == (None, None)
    assert elsewhere.conversation.tenant_id is None


async def test_strangers_make_us_ask_nobody_for_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    async with keys_from(key_answer("msteams")) as (keys, server):
        app = messages(monkeypatch, bot_services(keys, bot_settings()))
        for token in (None, "Bearer a.b.c", signed(iss=OWN_TENANT), unsigned({"alg": "none", "kid": "k"})):
            await app.post(authorization=token)
        assert server.requests == []


async def test_without_keys_the_channel_is_asked_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with keys_from(Answer(status="500 Oops")) as (keys, _):
        app = messages(monkeypatch, bot_services(keys, bot_settings()))
        assert problem_of(await app.post(authorization=signed())) == (503, "NetworkError")
        assert app.has_changed_nothing()


async def test_a_refusal_is_logged_by_its_reason_and_without_the_token(
    teams_app: Messages, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    token = signed(exp=now() - 600)
    await teams_app.post(authorization=token)
    logged = caplog.text + "".join(capsys.readouterr())
    assert "bot.token_refused" in logged
    assert "expired" in logged
    assert token.removeprefix("Bearer ")[:40] not in logged


async def test_without_a_bot_there_is_nothing_to_write_to(monkeypatch: pytest.MonkeyPatch) -> None:
    app = messages(monkeypatch, bot_services(None, bot_settings(bot_app_id=None, bot_tenant_id=None)))
    for token in (None, signed()):
        assert (await app.post(authorization=token)).status_code == 401
    assert app.has_changed_nothing()


# Gaps 2 to 4 of the SDK's validator. The last two are checked before the token.
TAKEN_BY_THE_SDK = {
    "no expiry",
    "no issuer",
    "an unknown issuer",
    "issuer as array",
    "another tenant's Entra token",
    "our own tenant's Entra token",
    "the government's cloud",
    "no service url",
    "an empty service url",
    "service url as array",
    "another service url",
    "a service url that begins alike",
    "another port",
    "not https",
    "another scheme",
    "a huge token",
}


@pytest.mark.parametrize("case", ["as it is", *REFUSED])
async def test_the_sdks_validator_takes_more_than_we_do_and_never_less(
    monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Show why the app doesn't use the SDK's validator (decision 0023). All issuers use these keys here."""
    token = (signed() if case == "as it is" else REFUSED[case]() or "").partition(" ")[2]
    async with keys_from(key_answer("msteams")) as (_, server):
        uri = f"{server.endpoint}/keys"
        monkeypatch.setattr(f"{JwtTokenValidator.__module__}._build_jwks_uri", lambda *_: uri)
        validator = JwtTokenValidator(AgentAuthConfiguration(client_id=APP_ID, tenant_id=TENANT))
        try:
            await validator.validate_token(token)
        except (jwt.PyJWTError, ValueError, KeyError, TypeError):
            is_taken = False
        else:
            is_taken = True
    assert is_taken == (case == "as it is" or case in TAKEN_BY_THE_SDK)


GOOD = Answer(body=key_list("msteams"))

DOWN = Answer(status="503 Busy")


class Clock:
    """A clock that moves only when a test changes it."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def test_keys_are_asked_for_once_an_hour() -> None:
    clock = Clock()
    async with keys_from(GOOD, clock=clock) as (keys, server):
        for _ in range(3):
            assert await keys.find(KEY_ID) is not None
        assert len(server.requests) == 1
        clock.now += KEEP_S + 1
        assert await keys.find(KEY_ID) is not None
        assert len(server.requests) == 2


async def test_a_new_key_is_found_and_invented_ones_cost_one_question_in_ten_seconds() -> None:
    clock = Clock()
    async with keys_from(GOOD, Answer(body=key_list(key_id="key-2")), clock=clock) as (keys, server):
        assert await keys.find(KEY_ID) is not None
        assert [await keys.find(f"invented-{number}") for number in range(20)] == [None] * 20
        assert len(server.requests) == 1
        clock.now += LOOK_AGAIN_S
        assert await keys.find("key-2") is not None
        assert await keys.find(KEY_ID) is None  # the key was withdrawn
        assert len(server.requests) == 2


async def test_many_at_once_ask_once() -> None:
    async with keys_from(Answer(body=GOOD.body, delay_s=0.05)) as (keys, server):
        results = await asyncio.gather(*(keys.find(KEY_ID) for _ in range(20)))
    assert all(results)
    assert len(server.requests) == 1


async def test_old_keys_are_good_for_a_day_while_there_are_no_new_ones() -> None:
    clock = Clock()
    async with keys_from(GOOD, DOWN, clock=clock) as (keys, _):
        assert await keys.find(KEY_ID) is not None
        clock.now += KEEP_S + 1
        assert await keys.find(KEY_ID) is not None
        clock.now += KEEP_ANYWAY_S
        with pytest.raises(DependencyError):
            await keys.find(KEY_ID)
        with pytest.raises(DependencyError):  # requests immediately after the failure must fail as well
            await keys.find(KEY_ID)


@pytest.mark.parametrize(
    "answer",
    [
        DOWN,
        Answer(lost=True),
        Answer(body=b"<html>"),
        Answer(body=b"[]"),
        Answer(body=b'{"keys": {}}'),
        Answer(body=b'{"keys": []}'),
        Answer(body=b"[" * 100_000),
        Answer(body=b" " * (MAX_ANSWER_BYTES + 100)),
    ],
    ids=["down", "lost", "html", "list", "no list", "empty", "deep", "huge"],
)
async def test_an_answer_without_keys_is_the_services_fault(answer: Answer) -> None:
    async with keys_from(answer) as (keys, _):
        with pytest.raises(DependencyError):
            await keys.find(KEY_ID)


@pytest.mark.attack("outgoing addresses")
async def test_keys_that_are_said_to_be_elsewhere_are_not_taken() -> None:
    async with keys_from(Answer(status="302 Found", headers={"location": "/other"}), GOOD) as (keys, server):
        with pytest.raises(DependencyError):
            await keys.find(KEY_ID)
        assert len(server.requests) == 1


async def test_what_is_no_rsa_key_with_an_id_is_left_out() -> None:
    (good,) = json.loads(key_list())["keys"]
    listed = [
        "x",
        {"kty": "oct", "k": "c2VjcmV0", "kid": "symmetric"},
        {"kty": "EC", "crv": "P-256", "kid": "curve"},
        {"kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB"},
        {name: value for name, value in good.items() if name != "kid"},
        good,
    ]
    async with keys_from(Answer(body=json.dumps({"keys": listed}).encode())) as (keys, _):
        assert await keys.find(KEY_ID) is not None
        for key_id in ("symmetric", "curve", "broken", "None"):
            assert await keys.find(key_id) is None
