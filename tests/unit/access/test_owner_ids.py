"""Ids begin with a keyed digest of their owner."""

import uuid

import pytest

from shared.access.owner_ids import PREFIX_CHARS, owned_id, owner_prefix

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
    with pytest.raises(ValueError, match="don't make an id unique"):
        owned_id("anna", KEY, "abc")
