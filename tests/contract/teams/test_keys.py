"""The Bot Service's keys: kept, asked for anew seldom, and good for a day when they cannot be had."""

import asyncio
import json

import pytest

from shared.platform.errors import DependencyError
from shared.teams.tokens import KEEP_ANYWAY_S, KEEP_S, LOOK_AGAIN_S, MAX_ANSWER_BYTES
from tests.contract.clients.scripted_server import Answer
from tests.contract.teams.bot_fixture import keys_from
from tests.contract.teams.signing import KEY_ID, key_list

pytestmark = pytest.mark.contract

GOOD = Answer(body=key_list("msteams"))
DOWN = Answer(status="503 Busy")


class Clock:
    """Stands still until it is moved."""

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
        assert await keys.find(KEY_ID) is None  # withdrawn
        assert len(server.requests) == 2


async def test_many_at_once_ask_once() -> None:
    async with keys_from(Answer(body=GOOD.body, delay_s=0.05)) as (keys, server):
        found = await asyncio.gather(*(keys.find(KEY_ID) for _ in range(20)))
    assert all(found)
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
        with pytest.raises(DependencyError):  # also of those who come right after
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
