"""Keeps a report within its token limit: a report that is cut in its middle is no JSON. Pure."""

import json
from collections.abc import Callable

from pydantic import JsonValue


def fit_report(
    values: dict[str, JsonValue], limit: int | None, count: Callable[[str], int]
) -> dict[str, JsonValue]:
    """The report without last items of its longest lists, until it has at most `limit` tokens.

    One that does not fit empty comes back empty: its cut is the reader's to see.
    """
    fitting = dict(values)
    while limit and count(_spoken(fitting)) > limit:
        lists = {name: part for name, part in fitting.items() if isinstance(part, list) and part}
        if not lists:
            break
        longest = max(lists, key=lambda name: len(_spoken(lists[name])))
        fitting[longest] = lists[longest][:-1]
    return fitting


def _spoken(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
