"""Lists that come in pages: followed until there is as much as was wanted."""

from collections.abc import Mapping
from typing import Any

from cli.api import Api

_PAGE = 100


def items_of(
    api: Api, path: str, name: str, limit: int, given: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """The first `limit` items of a list that is narrowed by `given`, over as many pages as it takes."""
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while len(found) < limit:
        parameters: dict[str, Any] = {**(given or {}), "limit": min(_PAGE, limit - len(found))}
        if cursor:
            parameters["cursor"] = cursor
        page = api.call("GET", path, params=parameters)
        found += page[name]
        cursor = page.get("cursor")
        if not cursor:
            break
    return found[:limit]
