"""The script that registers the app in Microsoft Entra ID. Replacements for `az` and `azd` record their
calls.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source_tree import ROOT

SCRIPT = ROOT / "infra/registration.sh"
DEPLOYED = {
    "AUTH_CLIENT_ID": "app-1",
    "GROUNDWORK_URL": "https://func.test",
    "IDENTITY_PRINCIPAL_ID": "identity-1",
    "AZURE_TENANT_ID": "tenant-1",
    "OWNER_ID_KEY": "kept",
}
# Each call is recorded as a line of JSON. `azd` returns the variables in ENV, and `az` answers queries by
# their kind.
STAND_IN = """#!{python}
import json, os, sys
call = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
open(os.environ["CALLS"], "a").write(json.dumps(call) + "\\n")
command, env = " ".join(call), json.loads(os.environ["ENV"])
if command.startswith("azd env get-value"):
    print(env.get(call[-1], "ERROR: no such key"))
    sys.exit(call[-1] not in env)
if "federated-credential list" in command:
    print(env.get("credential", ""))
elif "appRoleAssignments --query" in command:
    print(env.get("granted", ""))
elif "--method POST" in command:
    sys.exit("refused" in env)
elif "appRoles[?value==" in command:
    print("role-" + command.split("'")[1])
elif "ad app create" in command:
    print("app-new")
elif "--query id" in command:
    print("object-1")
"""

Run = Callable[..., tuple[str, list[list[str]]]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the script in an azd environment; return its output and the calls of `az` and `azd`."""
    for name in ("az", "azd"):
        (tmp_path / name).write_text(STAND_IN.format(python=sys.executable))
        (tmp_path / name).chmod(0o755)
    calls = tmp_path / "calls"

    def ran(environment: dict[str, str], code: int = 0) -> tuple[str, list[list[str]]]:
        calls.write_text("")
        variables = {
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "CALLS": str(calls),
            "ENV": json.dumps(environment),
        }
        done = subprocess.run(["sh", str(SCRIPT)], env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr, [json.loads(line) for line in calls.read_text().splitlines()]

    return ran


def bodies(calls: list[list[str]], part: str) -> list[dict[str, Any]]:
    """Return the JSON bodies of the calls that contain `part`."""
    flags = ("--body", "--parameters")
    return [
        json.loads(call[call.index(flag) + 1])
        for call in calls
        if part in call
        for flag in flags
        if flag in call
    ]


def test_key_of_ids_is_made_once(run: Run) -> None:
    key_calls = [call for call in run({})[1] if call[:4] == ["azd", "env", "set", "OWNER_ID_KEY"]]
    assert len(key_calls) == 1
    assert re.fullmatch(r"[0-9a-f]{64}", key_calls[0][4])
    assert key_calls != [call for call in run({})[1] if call[:4] == ["azd", "env", "set", "OWNER_ID_KEY"]]
    _, calls = run(DEPLOYED)
    assert not [call for call in calls if call[:3] == ["azd", "env", "set"]]


def test_a_deployed_app_gets_no_other_key_of_ids(run: Run) -> None:
    output, calls = run({**DEPLOYED, "OWNER_ID_KEY": ""}, code=1)
    assert "azd env set OWNER_ID_KEY" in output
    assert {tuple(call[:3]) for call in calls} == {("azd", "env", "get-value")}


def test_before_the_deployment_the_app_is_registered(run: Run) -> None:
    output, calls = run({})
    assert ["azd", "env", "set", "AUTH_CLIENT_ID", "app-new"] in calls
    assert "Next: azd up" in output
    registration, allowed = bodies(calls, "PATCH")
    assert registration["identifierUris"] == ["api://app-new"]
    assert registration["groupMembershipClaims"] == "ApplicationGroup"
    roles = registration["appRoles"]
    assert [role["value"] for role in roles] == ["admin", "publisher"]
    assert roles[0]["id"] != roles[1]["id"]
    scopes = registration["api"]["oauth2PermissionScopes"]
    assert re.fullmatch(r"[0-9a-f-]{36}", scopes[0]["id"])
    assert allowed["api"]["oauth2PermissionScopes"] == scopes
    (cli,) = allowed["api"]["preAuthorizedApplications"]
    assert cli["delegatedPermissionIds"] == [scopes[0]["id"]]
    assert not any("id-token" in part for call in calls for part in call)  # the implicit flow is not enabled


def test_after_it_people_can_sign_in_without_a_secret(run: Run) -> None:
    output, calls = run({**DEPLOYED, "CUSTOM_HOST_NAME_BOUND": "answers.contoso.com"})
    (update,) = [call for call in calls if call[:4] == ["az", "ad", "app", "update"]]
    assert update[-2:] == [
        "https://func.test/.auth/login/aad/callback",
        "https://answers.contoso.com/.auth/login/aad/callback",
    ]
    (credential,) = bodies(calls, "federated-credential")
    assert credential["subject"] == "identity-1"
    assert credential["issuer"] == "https://login.microsoftonline.com/tenant-1/v2.0"
    granted = [body["appRoleId"] for body in bodies(calls, "POST")]
    assert granted == ["role-GroupMember.Read.All", "role-User.Read.All"]
    assert "create" not in [call[3] for call in calls if call[:3] == ["az", "ad", "app"]]
    assert "People can sign in at https://func.test." in output


def test_a_second_time_changes_nothing(run: Run) -> None:
    done = {"credential": "there", "granted": "role-GroupMember.Read.All\nrole-User.Read.All"}
    _, calls = run({**DEPLOYED, **done})
    assert [call for call in calls if "POST" in call or "PATCH" in call] == []
    assert [call for call in calls if "federated-credential" in call and "create" in call] == []


def test_a_permission_that_may_not_be_granted_is_named(run: Run) -> None:
    output, _ = run({**DEPLOYED, "refused": "yes"})
    assert "Not granted: GroupMember.Read.All" in output
