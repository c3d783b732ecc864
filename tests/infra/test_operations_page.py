"""docs/operations.md knows what is deployed: parameters, alerts, outputs, settings, sections referred to."""

import json
import re
import subprocess

from scripts.infra_check.reader import read, text_of
from shared.platform.settings import setting_fields
from tests.architecture.source_tree import ROOT, tracked_files

PAGE = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
BICEP = ROOT / "infra/bicep"
MAIN = read(BICEP / "main.bicep")
HEADINGS = set(re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE))

OF_THE_PLATFORM = {
    "functionKeys",
    "groundworkInstances",
    "maxPollingInterval",
    "requestedAccessTokenVersion",
    "siteScopedCertificatesEnabled",
    "systemKeys",
}


def section(heading: str) -> str:
    """From a heading to the next one of its level or above."""
    level, rest = re.split(rf"^(#+) {re.escape(heading)}$", PAGE, maxsplit=1, flags=re.MULTILINE)[1:]
    return re.split(rf"^#{{1,{len(level)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def test_every_parameter_without_a_default_is_in_the_table() -> None:
    required = [param.name for param in MAIN.of("param") if param.value is None]
    assert len(required) == 3
    assert [name for name in required if not re.search(rf"`{name}` \| required", section("Deploy"))] == []


def test_every_variable_of_the_deployment_is_in_the_table_with_its_parameter() -> None:
    text = (BICEP / "main.parameters.json").read_text(encoding="utf-8")
    for parameter, given in json.loads(text)["parameters"].items():
        variable = re.search(r"\$\{(\w+)", str(given["value"]))
        assert variable, parameter
        row = rf"^\|[^|]*`{variable[1]}`[^|]*\|[^|]*`{parameter}`[^|]*\|"
        assert re.search(row, section("Deploy"), re.MULTILINE), parameter


def test_parameters_that_the_page_names_are_there() -> None:
    known = {param.name for file in BICEP.rglob("*.bicep") for param in read(file).of("param")}
    host = re.findall(r'"(\w+)":', (ROOT / "host.json").read_text(encoding="utf-8"))
    named = set(re.findall(r"`([a-z]+[A-Z]\w+)`", PAGE))
    assert len(named) >= 25
    assert sorted(named - known - set(host) - OF_THE_PLATFORM) == []


def test_every_alert_says_what_it_means_and_where_to_look() -> None:
    alerts = BICEP / "modules/alerts.bicep"
    names = [
        *(
            text_of(found.property("name"))
            for found in read(alerts).of("resource")
            if "metricAlerts" in found.target
        ),
        *re.findall(r"^    name: '([\w-]+)'$", alerts.read_text(encoding="utf-8"), re.MULTILINE),
    ]
    assert {"server-errors", "model-limits", "poison-queues", "failed-orchestrations"} <= set(names)
    told = section("When something is wrong")
    assert [name for name in names if name != "operators" and f"| `{name}` | " not in told] == []
    assert "| the budget | " in told


def test_the_events_of_alerts_are_told() -> None:
    alerts = (BICEP / "modules/alerts.bicep").read_text(encoding="utf-8")
    events = set(re.findall(r'"([a-z_]+\.[a-z_]+)"', alerts)) - {"poison.found"}
    assert [event for event in events if f"`{event}`" not in section("When something is wrong")] == []


def test_the_roles_of_the_app_are_those_on_the_page() -> None:
    roles = (BICEP / "modules/roles.bicep").read_text(encoding="utf-8")
    given = set(re.findall(r"^  \w+: '[0-9a-f-]{36}' // (.+)$", roles, re.MULTILINE))
    told = re.findall(r"^\| (?!on \|)[^|]+ \| ([A-Z][^|`]+) \|$", section("What the app may"), re.MULTILINE)
    assert {role for row in told for role in row.split(", ")} == given


def test_json_on_the_page_is_json() -> None:
    texts = re.findall(r"<<END\n(.*?)^END$", PAGE, re.MULTILINE | re.DOTALL)
    texts += [f"{{{block}}}" for block in re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)]
    assert len(texts) >= 2
    for text in texts:
        json.loads(text)


def test_what_azd_is_asked_for_is_an_output() -> None:
    outputs = {found.name for found in MAIN.of("output")}
    asked = set(re.findall(r"azd env get-value (\w+)", PAGE))
    assert asked
    assert asked <= outputs


def test_settings_that_the_page_names_are_settings() -> None:
    fields = set(setting_fields())
    variables = set(re.findall(r"\$\{(\w+)", (BICEP / "main.parameters.json").read_text(encoding="utf-8")))
    shell = {*re.findall(r"\b([A-Z_]+)=", PAGE), *re.findall(r"\$([A-Z_]+)", PAGE)}
    of_the_hook = {"GROUNDWORK_SMOKE_TEST", "AZURE_TENANT_ID", "AZURE_SUBSCRIPTION_ID"}
    named = {name for name in re.findall(r"`([A-Z][A-Z_]{5,})`", PAGE) if "_" in name}
    assert len(named) >= 15
    assert sorted(named - fields - variables - shell - of_the_hook) == []


def test_what_files_refer_to_is_a_section_of_the_page() -> None:
    here = "tests/infra/test_operations_page.py"
    pattern = re.compile(r'operations\.md,? (?:says how[^"\n]*)?\\?"([^"\\]+)\\?"')
    texts = [
        (ROOT / path).read_text(encoding="utf-8")
        for path in tracked_files()
        if path.suffix in {".py", ".bicep", ".sh", ".ps1", ".yml", ".md"} and str(path) != here
    ]
    named = {heading for text in texts for heading in pattern.findall(text)}
    assert {"When something is wrong", "Check it", "From GitHub", "Another embedding model"} <= named
    assert sorted(named - HEADINGS) == []


def test_shell_on_the_page_is_shell() -> None:
    scripts = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(scripts) >= 8
    for script in scripts:
        told = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
        assert told.returncode == 0, f"{told.stderr}\n{script}"
