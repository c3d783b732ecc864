"""The deployment as it is: no rule finds a fault, and what the rules believe of the app is true."""

import re

from scripts.infra_check.__main__ import OPEN_ROUTES, TRIGGER, faults
from scripts.infra_check.catalogue import ROLES, VERSIONS
from tests.architecture.source_tree import ROOT
from tests.contract.worker.golden import read_golden
from tests.e2e.access.test_routes import WITHOUT_IDENTITY

BICEP = ROOT / "infra" / "bicep"
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in BICEP.rglob("*.bicep"))


def test_no_rule_finds_a_fault() -> None:
    assert faults() == []


def test_the_webhook_names_the_function_with_the_blob_trigger() -> None:
    triggers = [
        name
        for name, function in read_golden().items()
        if any(binding["type"] == "blobTrigger" for binding in function["bindings"])
    ]
    assert triggers == [TRIGGER]


def test_what_is_open_in_azure_is_what_asks_for_no_identity_in_the_code() -> None:
    routes = {route.removeprefix("GET ").replace("{asset}", "*") for route in WITHOUT_IDENTITY}
    assert {path.removeprefix("/api/") for path in OPEN_ROUTES} == routes


def test_the_catalogue_holds_nothing_that_is_not_used() -> None:
    assert [kind for kind in VERSIONS if f"'{kind}@" not in TEXT] == []
    assert [name for guid, name in ROLES.items() if guid not in TEXT] == []


def test_charts_and_alerts_ask_for_what_the_app_reports() -> None:
    asked = (BICEP / "workbook.json").read_text(encoding="utf-8") + TEXT
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for room in ("shared", "functions")
        for path in (ROOT / room).rglob("*.py")
    )
    metrics = set(re.findall(r"groundwork\.[a-z_.]+[a-z]", asked))
    alerts = (BICEP / "modules" / "alerts.bicep").read_text(encoding="utf-8")
    events = set(re.findall(r'"([a-z_]+\.[a-z_]+)"', alerts))
    assert len(metrics) >= 10
    assert len(events) >= 3
    assert sorted(name for name in metrics | events if f'"{name}"' not in code) == []
