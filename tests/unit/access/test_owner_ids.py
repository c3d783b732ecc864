"""Tests that ids begin with a keyed digest of their owner."""

import re
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from shared.access.owner_ids import (
    DATED_ID,
    PREFIX_CHARS,
    dated_id,
    dated_range,
    owned_id,
    owner_prefix,
)

KEY = "the key of one deployment, 32 characters"
OTHER_KEY = "the key of another deployment, also long"


def test_ids_of_one_owner_share_a_prefix_and_differ() -> None:
    ids = {owned_id("anna", KEY, uuid.uuid4().hex) for _ in range(1000)}
    assert len(ids) == 1000
    assert {one[:PREFIX_CHARS] for one in ids} == {owner_prefix("anna", KEY)}
    assert all(len(one) == 32 and set(one) <= set("0123456789abcdef") for one in ids)


def test_prefixes_differ_by_owner_and_by_key() -> None:
    prefixes = {owner_prefix(user, key) for user in ("anna", "ben", "Anna", "") for key in (KEY, OTHER_KEY)}
    assert len(prefixes) == 8


def test_prefix_never_changes() -> None:
    assert owner_prefix("anna", KEY) == "f46bc76ddc1e327e"


def test_lone_surrogate_in_user_id_is_accepted() -> None:
    assert len(owner_prefix("\ud800", KEY)) == PREFIX_CHARS


def test_short_unique_part_is_refused() -> None:
    with pytest.raises(ValueError, match="digits, but an id needs"):
        owned_id("anna", KEY, "abc")


def test_dated_ids_of_an_owner_are_a_range_newest_first() -> None:
    began = datetime(2026, 5, 4, 12, tzinfo=UTC)
    dated = [dated_id("anna", KEY, began + timedelta(milliseconds=ms), "0" * 8) for ms in (0, 1, 60_000)]
    assert sorted(dated) == dated[::-1]
    assert all(re.fullmatch(DATED_ID, one) and one.startswith(owner_prefix("anna", KEY)) for one in dated)
    prefix = owner_prefix("anna", KEY)
    first, last = dated_range(prefix)
    assert all(first < one < last for one in dated)
    others = [owned_id("anna", KEY, digit * 16) for digit in "0f"]
    assert not any(first < one < last for one in others)
    assert dated_range(prefix, dated[1]) == (dated[1], last)
