"""Tests for the directory cache: its contents, the lifetime of its entries and its size limit."""

import asyncio

import pytest

from shared.access.directory import MAX_GROUPS, UNKNOWN_KEPT_S, CachedDirectory
from shared.platform.errors import DependencyError, NotFoundError
from tests.fakes.directory import InMemoryDirectory

KEPT_S = 300


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class SlowDirectory(InMemoryDirectory):
    """A directory that answers once `go` is set."""

    def __init__(self) -> None:
        super().__init__({"eva": frozenset({"g"})})
        self.go = asyncio.Event()

    async def groups_of(self, user_id: str) -> frozenset[str]:
        self.asked.append(user_id)
        await self.go.wait()
        if self.fails_with is not None:
            raise self.fails_with
        return self.groups[user_id]


async def test_a_person_is_asked_for_once_while_it_holds() -> None:
    inner, clock = InMemoryDirectory({"eva": frozenset({"g"})}), Clock()
    cached = CachedDirectory(inner, KEPT_S, clock)
    assert await cached.groups_of("eva") == {"g"}
    inner.groups["eva"] = frozenset({"h"})
    clock.now = KEPT_S - 1
    assert await cached.groups_of("eva") == {"g"}
    clock.now = KEPT_S
    assert await cached.groups_of("eva") == {"h"}
    assert len(inner.asked) == 2


async def test_everybody_has_their_own_groups() -> None:
    inner = InMemoryDirectory({"eva": frozenset({"g"}), "ben": frozenset({"h"})})
    cached = CachedDirectory(inner, KEPT_S)
    for _ in range(2):
        assert await cached.groups_of("eva") == {"g"}
        assert await cached.groups_of("ben") == {"h"}
    assert (await cached.person("ben")).is_guest is False


async def test_that_somebody_is_unknown_is_forgotten_soon() -> None:
    inner, clock = InMemoryDirectory(), Clock()
    cached = CachedDirectory(inner, KEPT_S, clock)
    for _ in range(3):
        with pytest.raises(NotFoundError):
            await cached.groups_of("eva")
    assert len(inner.asked) == 1
    inner.groups["eva"] = frozenset({"g"})
    clock.now = UNKNOWN_KEPT_S
    assert await cached.groups_of("eva") == {"g"}


async def test_a_failure_is_not_remembered() -> None:
    inner = InMemoryDirectory({"eva": frozenset({"g"})})
    inner.fails_with = DependencyError("down")
    cached = CachedDirectory(inner, KEPT_S)
    with pytest.raises(DependencyError):
        await cached.groups_of("eva")
    inner.fails_with = None
    assert await cached.groups_of("eva") == {"g"}


async def test_nothing_is_served_beyond_its_time_though_the_directory_is_down() -> None:
    inner, clock = InMemoryDirectory({"eva": frozenset({"g"})}), Clock()
    cached = CachedDirectory(inner, KEPT_S, clock)
    await cached.groups_of("eva")
    inner.fails_with = DependencyError("down")
    clock.now = KEPT_S
    with pytest.raises(DependencyError):
        await cached.groups_of("eva")


async def test_zero_seconds_remember_nothing() -> None:
    inner = InMemoryDirectory({"eva": frozenset({"g"})})
    cached = CachedDirectory(inner, 0)
    await cached.groups_of("eva")
    await cached.groups_of("eva")
    assert len(inner.asked) == 2


async def test_callers_of_the_same_time_share_one_question() -> None:
    inner = SlowDirectory()
    cached = CachedDirectory(inner, KEPT_S)
    callers = [asyncio.create_task(cached.groups_of("eva")) for _ in range(5)]
    await asyncio.sleep(0)
    callers[0].cancel()  # the caller that started the lookup is cancelled
    await asyncio.sleep(0)
    inner.go.set()
    answers = await asyncio.gather(*callers, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert answers[1:] == [frozenset({"g"})] * 4
    assert inner.asked == ["eva"]


async def test_they_share_its_failure_too_and_the_next_one_asks_anew() -> None:
    inner = SlowDirectory()
    inner.fails_with = DependencyError("down")
    cached = CachedDirectory(inner, KEPT_S)
    callers = [asyncio.create_task(cached.groups_of("eva")) for _ in range(2)]
    await asyncio.sleep(0)
    inner.go.set()
    answers = await asyncio.gather(*callers, return_exceptions=True)
    assert all(isinstance(answer, DependencyError) for answer in answers)
    inner.fails_with = None
    assert await cached.groups_of("eva") == {"g"}


async def test_what_was_not_used_for_longest_gives_way() -> None:
    half = frozenset(f"g-{n}" for n in range(MAX_GROUPS // 2 - 10))
    inner = InMemoryDirectory(dict.fromkeys(("eva", "ben", "cleo"), half))
    cached = CachedDirectory(inner, KEPT_S)
    for name in ("eva", "ben", "eva", "cleo", "eva"):
        await cached.groups_of(name)
    assert inner.asked == ["eva", "ben", "cleo"]
    await cached.groups_of("ben")
    assert inner.asked[3:] == ["ben"]


async def test_somebody_with_more_than_fits_is_served_and_not_kept() -> None:
    inner = InMemoryDirectory({"eva": frozenset(f"g-{n}" for n in range(MAX_GROUPS + 1))})
    cached = CachedDirectory(inner, KEPT_S)
    assert len(await cached.groups_of("eva")) == MAX_GROUPS + 1
    await cached.groups_of("eva")
    assert len(inner.asked) == 2
