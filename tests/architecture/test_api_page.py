"""docs/api.md lists every HTTP function of the app, and no other."""

import re

from tests.architecture.source_tree import ROOT
from tests.contract.worker.golden import api_routes

CALL = re.compile(r"^\| `([A-Z]+) /([^`]+)` \|", re.MULTILINE)


def test_every_route_is_documented() -> None:
    routes = {(method, route) for method, route, _ in api_routes()}
    assert set(CALL.findall((ROOT / "docs/api.md").read_text(encoding="utf-8"))) == routes
