"""docs/api.md lists every HTTP function of the app, and no other."""

import json
import re

from tests.architecture.source_tree import ROOT

CALL = re.compile(r"^\| `([A-Z]+) /([^`]+)` \|", re.MULTILINE)


def test_every_route_is_documented() -> None:
    bindings = json.loads((ROOT / "tests/contract/worker/golden_bindings.json").read_text(encoding="utf-8"))
    routes = {
        (method, binding["route"])
        for function in bindings.values()
        for binding in function["bindings"]
        if binding["type"] == "httpTrigger"
        for method in binding["methods"]
    }
    assert set(CALL.findall((ROOT / "docs/api.md").read_text(encoding="utf-8"))) == routes
