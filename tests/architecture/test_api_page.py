"""docs/api.md lists every HTTP function of the app, and no other."""

import re

from tests.architecture.source_tree import ROOT
from tests.contract.worker.golden import api_routes

CALLS = re.compile(r"^\| `([A-Z ]+) /([^`]+)` \|", re.MULTILINE)


def test_every_route_is_documented() -> None:
    routes = {(method, route) for method, route, _ in api_routes()}
    rows = CALLS.findall((ROOT / "docs/api.md").read_text(encoding="utf-8"))
    assert {(method, route) for methods, route in rows for method in methods.split()} == routes
