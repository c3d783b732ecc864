"""The hook that runs after a deployment. Replacements for `az`, `python3` and `sleep` record their calls."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT

HOOK = "infra/hooks/postdeploy.sh"
TOKEN = "a-token-that-nobody-shall-read"
OUTPUTS = {
    "AZURE_RESOURCE_GROUP": "rg-test",
    "AZURE_FUNCTION_APP_NAME": "func-test",
    "CONTENT_STORAGE_NAME": "stdocstest",
    "EVENT_GRID_TOPIC_NAME": "evgt-test",
    "AZURE_TENANT_ID": "tenant-of-azure",
    "AUTH_TENANT_ID": "tenant-of-people",
    "GROUNDWORK_SCOPE": "api://app/.default",
    "GROUNDWORK_URL": "https://app.test",
}
SUBSCRIPTION = "subscription-of-azd"
"""azd tells it to its hooks; the Azure CLI may have another one for its default."""
# Each call adds a line. The file named after the program contains the number of initial calls that fail.
STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
case "$*" in
    *"account show"*) exit "${NOBODY:-0}" ;;
    *get-access-token*) [ -z "$NO_TOKEN" ] || exit 1; echo "$TOKEN"; exit 0 ;;
    -c*) exit "${NO_PACKAGES:-0}" ;;
    *"cli check"*) echo "with $GROUNDWORK_URL $GROUNDWORK_TOKEN" >> "$CALLS" ;;
esac
left="$COUNTS/$(basename "$0")"
failures=$(cat "$left" 2>/dev/null || echo 0)
[ "$failures" -eq 0 ] && exit 0
echo $((failures - 1)) > "$left"
echo "${ERROR:-}" >&2
exit 1
"""


@dataclass(frozen=True)
class Outcome:
    """The result of the hook: exit code, output, and the calls in order."""

    code: int
    output: str
    calls: list[str]

    def of(self, start: str) -> list[str]:
        return [call for call in self.calls if call.startswith(start)]


@pytest.fixture
def deployed(tmp_path: Path) -> Callable[..., Outcome]:
    """Run the hook in a copy of the project. `fails` gives the number of failures of a program before it
    succeeds.
    """
    hooks, programs, counts = (tmp_path / name for name in ("project/infra/hooks", "programs", "counts"))
    for folder in (hooks, programs, counts):
        folder.mkdir(parents=True)
    shutil.copy(ROOT / HOOK, hooks)
    for name in ("az", "python3", "sleep"):
        (programs / name).write_text(STAND_IN)
        (programs / name).chmod(0o755)

    def run(fails: dict[str, int] | None = None, **environment: str) -> Outcome:
        for name, count in (fails or {}).items():
            (counts / name).write_text(str(count))
        variables = {
            "AZURE_SUBSCRIPTION_ID": SUBSCRIPTION,
            "CALLS": str(tmp_path / "calls"),
            "COUNTS": str(counts),
            "TOKEN": TOKEN,
            "NO_TOKEN": "",
        }
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        ended = subprocess.run(
            ["sh", str(hooks / "postdeploy.sh")],
            env={**OUTPUTS, **variables, "PATH": path, **environment},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return Outcome(
            ended.returncode, ended.stdout + ended.stderr, (tmp_path / "calls").read_text().splitlines()
        )

    return run


def test_the_shell_understands_it() -> None:
    assert subprocess.run(["sh", "-n", str(ROOT / HOOK)], check=False).returncode == 0


def test_the_subscription_is_made_and_then_the_app_is_checked(deployed: Callable[..., Outcome]) -> None:
    outcome = deployed()
    assert outcome.code == 0
    account_call, deployment_call, token = outcome.of("az ")
    assert "az account show" in account_call
    assert "az deployment group create" in deployment_call
    assert "--resource-group rg-test" in deployment_call
    assert "topicName=evgt-test appName=func-test storageName=stdocstest" in deployment_call
    assert "--template-file infra/bicep/modules/event-subscriptions.bicep" in deployment_call
    assert "--tenant tenant-of-people --scope api://app/.default" in token
    assert all(f"--subscription {SUBSCRIPTION} " in call for call in (account_call, deployment_call))
    assert outcome.calls[-2:] == ["python3 -m cli check", f"with https://app.test {TOKEN}"]


def test_the_token_is_shown_to_nobody(deployed: Callable[..., Outcome]) -> None:
    outcome = deployed({"python3": 9})
    assert TOKEN not in outcome.output
    assert [call for call in outcome.calls if TOKEN in call and not call.startswith("with ")] == []


def test_an_app_that_is_not_ready_is_waited_for(deployed: Callable[..., Outcome]) -> None:
    outcome = deployed({"az": 2, "python3": 2})
    assert outcome.code == 0
    assert len(outcome.of("az deployment")) == 3
    assert outcome.of("sleep") == ["sleep 30", "sleep 30", "sleep 60", "sleep 60"]
    assert len(outcome.of("python3 -m cli check")) == 3


def test_without_a_subscription_the_hook_fails_and_checks_nothing(deployed: Callable[..., Outcome]) -> None:
    outcome = deployed({"az": 99})
    assert outcome.code == 1
    assert len(outcome.of("az deployment")) == 20
    assert "only the timer finds files" in outcome.output
    assert outcome.of("python3") == []


def test_nobody_is_kept_waiting_for_what_no_waiting_mends(deployed: Callable[..., Outcome]) -> None:
    signed_out = deployed(None, NOBODY="1")
    assert signed_out.code == 1
    assert "az login --tenant tenant-of-azure" in signed_out.output
    assert signed_out.of("az deployment") == signed_out.of("sleep") == []


def test_a_missing_permission_is_named_at_once(deployed: Callable[..., Outcome]) -> None:
    refused = deployed({"az": 99}, ERROR="(AuthorizationFailed) The client does not have authorization")
    assert refused.code == 1
    assert len(refused.of("az deployment")) == 1
    assert "(AuthorizationFailed) The client" in refused.output
    assert "need Contributor on the resource group rg-test" in refused.output
    assert "azd hooks run postdeploy" in refused.output
    assert refused.of("sleep") == refused.of("python3") == []


def test_a_check_that_fails_fails_the_hook(deployed: Callable[..., Outcome]) -> None:
    outcome = deployed({"python3": 99})
    assert outcome.code == 1
    assert len(outcome.of("python3 -m cli check")) == 3
    assert "does not work" in outcome.output


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"NO_TOKEN": "1"}, "there is no token for api://app/.default"),
        ({"TOKEN": ""}, "there is no token for api://app/.default"),
        ({"NO_PACKAGES": "1"}, "python3 has not what the command line needs"),
        ({"GROUNDWORK_SMOKE_TEST": "skip"}, "GROUNDWORK_SMOKE_TEST is skip"),
    ],
)
def test_what_cannot_be_checked_is_said_and_is_no_failure(
    deployed: Callable[..., Outcome], environment: dict[str, str], reason: str
) -> None:
    outcome = deployed(None, **environment)
    assert outcome.code == 0
    assert f"was not checked: {reason}" in outcome.output
    assert outcome.of("python3 -m cli check") == []


def test_the_environment_of_the_project_goes_before_the_system_s(
    deployed: Callable[..., Outcome], tmp_path: Path
) -> None:
    own = tmp_path / "project/.venv/bin/python"
    own.parent.mkdir(parents=True)
    shutil.copy(tmp_path / "programs/python3", own)
    assert deployed().of("python -m cli check")


def test_both_hooks_do_the_same() -> None:
    other = (ROOT / HOOK.replace(".sh", ".ps1")).read_text(encoding="utf-8")
    for part in (
        *("az deployment group create", "event-subscriptions.bicep", "$try -eq 20", "-Seconds 30"),
        *(
            "az account get-access-token",
            "az account show",
            "AuthorizationFailed",
            "GROUNDWORK_SMOKE_TEST",
            "-m cli check",
            "$try -eq 3",
            "-Seconds 60",
        ),
    ):
        assert part in other, part
    for name in {"AZURE_SUBSCRIPTION_ID", *OUTPUTS} - {
        "GROUNDWORK_URL"
    }:  # the command line reads this variable
        assert f"$env:{name}" in other, name


def test_what_the_hook_reads_is_an_output_of_the_deployment() -> None:
    main = (ROOT / "infra/bicep/main.bicep").read_text(encoding="utf-8")
    assert [name for name in OUTPUTS if f"output {name} string" not in main] == []
