"""Tests for the cache directives in responses of the MCP server."""

import pytest

from functions.http.mcp_protocol import Message


@pytest.mark.parametrize(
    ("method", "scope"),
    [("tools/list", "private"), ("resources/read", "private"), ("resources/templates/list", "public")],
)
def test_what_differs_from_person_to_person_is_kept_for_one_alone(method: str, scope: str) -> None:
    assert Message(method, id=1, is_stateless=True).result({})["result"]["cacheScope"] == scope
