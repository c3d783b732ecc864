"""Tests for the credentials accepted by the model server."""

import pytest

from local.model_server.app import admits


@pytest.mark.parametrize(
    ("headers", "may_pass"),
    [
        ({"api-key": "k"}, True),
        ({"api-key": "t"}, False),
        ({"authorization": "Bearer t"}, True),
        ({"authorization": "Bearer k"}, True),
        ({"authorization": "Basic k"}, False),
        ({"api-key": "wrong", "authorization": "Bearer t"}, False),
        ({}, False),
    ],
)
def test_keys_and_tokens_open_what_they_open_in_azure(headers: dict[str, str], may_pass: bool) -> None:
    assert admits(headers, "k", "t") is may_pass
    assert admits(headers, None, None)


def test_with_a_key_alone_a_bearer_is_the_key() -> None:
    assert admits({"authorization": "Bearer k"}, "k", None)
    assert not admits({"authorization": "Bearer t"}, "k", None)
    assert not admits({"api-key": "t"}, None, "t")
