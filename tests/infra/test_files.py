"""Files that azd reads, and queries of charts and alerts: every name that they use exists. Needs no
compiler.
"""

import json
import re
from typing import Any

import yaml

from local.host.settings import parse_timespan, read_host_options
from tests.architecture.source_tree import ROOT

BICEP = ROOT / "infra/bicep"
MAIN = (BICEP / "main.bicep").read_text(encoding="utf-8")
SOURCES = "\n".join(path.read_text(encoding="utf-8") for path in sorted(BICEP.rglob("*.bicep")))
PARAMETERS: dict[str, dict[str, str]] = json.loads(
    (BICEP / "main.parameters.json").read_text(encoding="utf-8")
)["parameters"]
HOST: dict[str, Any] = json.loads((ROOT / "host.json").read_text(encoding="utf-8"))
KEPT = {"BUDGET_START_DATE": "budgetStartDate", "CUSTOM_HOST_NAME_BOUND": "boundHostName"}
"""Outputs that azd gives to the parameters of the next deployment."""


def test_every_parameter_can_be_set_by_a_variable() -> None:
    declared = set(re.findall(r"^param (\w+)", MAIN, re.MULTILINE))
    assert declared - PARAMETERS.keys() == {"thisMonth"}  # the current time
    assert PARAMETERS.keys() - declared == set()
    # No parameter has a default here. azd omits variables that are not set, so that only main.bicep defines
    # defaults.
    assert [one for one in PARAMETERS.values() if not re.fullmatch(r"\$\{[A-Z_]+\}", one["value"])] == []
    assert len({one["value"] for one in PARAMETERS.values()}) == len(PARAMETERS)


def test_what_a_deployment_gives_out_is_what_the_next_one_asks_for() -> None:
    outputs = set(re.findall(r"^output (\w+)", MAIN, re.MULTILINE))
    variables = {one["value"][2:-1]: name for name, one in PARAMETERS.items()}
    assert {output: variables[output] for output in KEPT} == KEPT
    assert KEPT.keys() <= outputs


def test_the_offered_regions_have_quota_for_the_default_models() -> None:
    defaults = dict(re.findall(r"^param (\w+) \w+ = '?([^'\n]+)'?$", MAIN, re.MULTILINE))
    expected = [
        f"OpenAI.{defaults['modelDeploymentType']}.{defaults[f'{model}ModelName']},{defaults[f'{model}ModelCapacity']}"
        for model in ("chat", "embedding")
    ]
    usage = re.search(r"usageName: \[(.*?)\]", MAIN, re.DOTALL)
    assert usage
    assert re.findall(r"'(.+)'", usage[1]) == expected


def test_azd_finds_the_files_and_the_app() -> None:
    azure: dict[str, Any] = yaml.safe_load((ROOT / "azure.yaml").read_text(encoding="utf-8"))
    assert azure["infra"] == {"provider": "bicep", "path": "infra/bicep", "module": "main"}
    (service,) = azure["services"].values()
    assert (service["project"], service["language"], service["host"]) == (".", "python", "function")
    assert azure["requiredVersions"]["azd"]
    for step in azure["hooks"]["postdeploy"].values():
        assert (ROOT / step["run"]).is_file()


def test_every_abbreviation_is_used() -> None:
    starts = json.loads((BICEP / "abbreviations.json").read_text(encoding="utf-8"))
    assert set(re.findall(r"\babbreviations\.(?!json)(\w+)", MAIN)) == starts.keys()


def test_charts_and_alerts_ask_for_what_the_app_reports() -> None:
    queries = (BICEP / "workbook.json").read_text(encoding="utf-8") + SOURCES
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for room in ("shared", "functions", "orchestrations")
        for path in (ROOT / room).rglob("*.py")
    )
    metrics = set(re.findall(r"groundwork\.[a-z_.]+[a-z]", queries))
    alerts = (BICEP / "modules" / "alerts.bicep").read_text(encoding="utf-8")
    events = set(re.findall(r'"([a-z_]+\.[a-z_]+)"', alerts))
    assert len(metrics) >= 10
    assert len(events) >= 3
    assert sorted(name for name in metrics | events if f'"{name}"' not in code) == []


def test_the_local_host_keeps_to_what_the_deployed_host_json_says() -> None:
    here = read_host_options(ROOT)
    assert "host.json" not in (ROOT / ".funcignore").read_text(encoding="utf-8")
    assert here.route_prefix == HOST["extensions"]["http"]["routePrefix"]
    assert here.task_hub == HOST["extensions"]["durableTask"]["hubName"]
    assert here.max_parallel_activities == HOST["extensions"]["durableTask"]["maxConcurrentActivityFunctions"]
    queues = HOST["extensions"]["queues"]
    assert here.queues.max_dequeue_count == queues["maxDequeueCount"]
    assert here.queues.max_polling_interval_s == parse_timespan(queues["maxPollingInterval"])
    assert here.function_timeout_s == parse_timespan(HOST["functionTimeout"])
    assert HOST["telemetryMode"] == "OpenTelemetry"
