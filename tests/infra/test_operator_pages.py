"""The pages for operators name every parameter, alert, output, setting and role of the deployment."""

import json
import re
import subprocess

from shared.platform.settings_groups.base import settings_of
from shared.tools.registry import all_setting_groups
from tests.architecture.source_tree import ROOT, tracked_files

PAGES = {
    name: (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
    for name in ("deploy", "operate", "troubleshooting", "cost-and-size", "status-and-evidence")
}
TEXT = "\n".join(PAGES.values())
BICEP = ROOT / "infra/bicep"
MAIN = (BICEP / "main.bicep").read_text(encoding="utf-8")
PARAMETERS: dict[str, dict[str, str]] = json.loads(
    (BICEP / "main.parameters.json").read_text(encoding="utf-8")
)["parameters"]

OF_THE_PLATFORM = {
    "functionKeys",
    "groupMembershipClaims",
    "groundworkInstances",
    "masterKey",
    "requestedAccessTokenVersion",
    "siteScopedCertificatesEnabled",
    "systemKeys",
    "workItemQueueVisibilityTimeout",
}


def variable_of(parameter: str) -> str:
    """Return the azd variable that sets a parameter of main.bicep."""
    return PARAMETERS[parameter]["value"][2:-1]


def section(page: str, heading: str) -> str:
    """Return the text from a heading to the next heading of its level or above."""
    level, rest = re.split(rf"^(#+) {re.escape(heading)}$", PAGES[page], maxsplit=1, flags=re.MULTILINE)[1:]
    return re.split(rf"^#{{1,{len(level)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def test_every_required_parameter_is_marked() -> None:
    required = re.findall(r"^param (\w+) \w+$", MAIN, re.MULTILINE)
    assert len(required) == 5
    text = section("deploy", "Deploy")
    assert [name for name in required if f"- `{variable_of(name)}`: required" not in text] == []


def test_every_variable_of_the_deployment_is_documented() -> None:
    names = re.findall(r"^- (`[A-Z].*?`): ", section("deploy", "Deploy"), re.MULTILINE)
    documented = {name for row in names for name in re.findall(r"`(\w+)`", row)}
    assert documented == {variable_of(parameter) for parameter in PARAMETERS}


def test_parameters_and_host_settings_on_the_pages_exist() -> None:
    files = [path.read_text(encoding="utf-8") for path in BICEP.rglob("*.bicep")]
    parameters = {name for text in files for name in re.findall(r"^param (\w+)", text, re.MULTILINE)}
    host = re.findall(r'"(\w+)":', (ROOT / "host.json").read_text(encoding="utf-8"))
    mentions = set(re.findall(r"`([a-z]+[A-Z]\w+)`", TEXT))
    assert len(mentions) >= 5
    assert sorted(mentions - parameters - set(host) - OF_THE_PLATFORM) == []


def test_every_alert_says_what_it_means_and_where_to_look() -> None:
    alerts = BICEP / "modules/alerts.bicep"
    names = re.findall(r"^  (?:  )?name: '([\w-]+)'$", alerts.read_text(encoding="utf-8"), re.MULTILINE)
    assert {"server-errors", "model-limits", "poison-queues", "failed-orchestrations"} <= set(names)
    alerts_section = section("troubleshooting", "Alerts")
    assert [name for name in names if name != "operators" and f"| `{name}` | " not in alerts_section] == []
    assert "| the budget | " in alerts_section


def test_the_events_of_alerts_are_told() -> None:
    alerts = (BICEP / "modules/alerts.bicep").read_text(encoding="utf-8")
    events = set(re.findall(r'"([a-z_]+\.[a-z_]+)"', alerts)) - {"poison.found"}
    assert [event for event in events if f"`{event}`" not in section("troubleshooting", "Alerts")] == []


def test_the_roles_of_the_app_are_those_on_the_page() -> None:
    roles = (BICEP / "modules/roles.bicep").read_text(encoding="utf-8")
    roles_in_code = set(re.findall(r"^  \w+: '[0-9a-f-]{36}' // (.+)$", roles, re.MULTILINE))
    table_rows = re.findall(
        r"^\| (?!on \|)[^|]+ \| ([A-Z][^|`]+) \|$", section("deploy", "Roles of the app"), re.MULTILINE
    )
    assert {role for row in table_rows for role in row.split(", ")} == roles_in_code


def test_json_on_the_page_is_json() -> None:
    texts = re.findall(r"GROUNDWORK_SETTINGS '(\{.+?\})'", TEXT)
    assert texts
    for text in texts:
        json.loads(text)


def test_what_azd_is_asked_for_is_an_output() -> None:
    outputs = set(re.findall(r"^output (\w+)", MAIN, re.MULTILINE))
    names = set(re.findall(r"azd env get-value (\w+)", TEXT))
    assert names
    assert names <= outputs | {"AUTH_CLIENT_ID"}  # the registration script sets AUTH_CLIENT_ID


def test_settings_that_the_page_names_are_settings() -> None:
    fields = {name for group in all_setting_groups().values() for name in settings_of(group)}
    variables = {parameter["value"][2:-1] for parameter in PARAMETERS.values()}
    shell = {*re.findall(r"\b([A-Z_]+)=", TEXT), *re.findall(r"\$([A-Z_]+)", TEXT)}
    of_the_hook = {"GROUNDWORK_SMOKE_TEST", "AZURE_TENANT_ID", "AZURE_SUBSCRIPTION_ID"}
    of_the_host = {"FUNCTIONS_REQUEST_BODY_SIZE_LIMIT"}
    mentions = {name for name in re.findall(r"`([A-Z][A-Z_]{5,})`", TEXT) if "_" in name}
    assert len(mentions) >= 15
    assert sorted(mentions - fields - variables - shell - of_the_hook - of_the_host) == []


def test_what_files_refer_to_is_a_section_of_its_page() -> None:
    here = "tests/infra/test_operator_pages.py"
    pattern = re.compile(r'docs/([a-z-]+)\.md,? (?:says how[^"\n]*)?\\?"([^"\\]+)\\?"')
    texts = [
        (ROOT / path).read_text(encoding="utf-8")
        for path in tracked_files()
        if path.suffix in {".py", ".bicep", ".sh", ".ps1", ".yml"} and str(path) != here
    ]
    references = {reference for text in texts for reference in pattern.findall(text)}
    assert {("troubleshooting", "Alerts"), ("deploy", "Check it"), ("deploy", "From GitHub")} <= references
    missing = [
        (page, heading)
        for page, heading in references
        if not re.search(rf"^#+ {re.escape(heading)}$", read_page(page), re.MULTILINE)
    ]
    assert missing == []


def read_page(name: str) -> str:
    return (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")


def test_shell_on_the_page_is_shell() -> None:
    scripts = re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert len(scripts) >= 8
    for script in scripts:
        result = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
        assert result.returncode == 0, f"{result.stderr}\n{script}"
