"""GitHub's workflows, checked without running them: they call existing commands, including all commands of
.ci/run, and contain no secret.
"""

import re
from functools import cache
from typing import Any

import pytest
import yaml

from tests.architecture.source_tree import ROOT
from tests.infra.compiler import NOT_FOUND

WORKFLOWS = ROOT / ".github/workflows"
NAMES = ["ci.yml", "deploy.yml", "nightly.yml", "proof.yml"]
VERBS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
FILE = re.compile(r"(?:^|\s)((?:infra|requirements|scripts|\.ci)/[\w./-]+)")


def text_of(name: str) -> str:
    return (WORKFLOWS / name).read_text(encoding="utf-8")


@cache
def workflow(name: str) -> dict[Any, Any]:
    parsed = yaml.safe_load(text_of(name))
    assert isinstance(parsed, dict)
    return parsed


def steps_of(name: str) -> list[dict[str, Any]]:
    return [step for job in workflow(name)["jobs"].values() for step in job.get("steps", ())]


def commands_of(name: str) -> str:
    return "\n".join(step["run"] for step in steps_of(name) if "run" in step)


def verbs_in(commands: str) -> set[str]:
    return set(re.findall(r"^make ([\w-]+)", commands, re.MULTILINE))


def test_there_are_no_others() -> None:
    assert sorted(path.name for path in WORKFLOWS.iterdir()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_what_a_workflow_calls_is_there(name: str) -> None:
    commands = commands_of(name)
    assert verbs_in(commands) <= VERBS
    assert [path for path in FILE.findall(commands) if not (ROOT / path).exists()] == []


def test_the_tests_are_those_of_our_own_script() -> None:
    ours = verbs_in((ROOT / ".ci/run").read_text(encoding="utf-8"))
    assert ours
    assert ours <= verbs_in(commands_of("ci.yml"))


def test_the_compiler_is_that_of_the_tests() -> None:
    (version,) = re.findall(r"--version (v[\d.]+)", NOT_FOUND)
    assert f"az bicep install --version {version}" in commands_of("ci.yml")


@pytest.mark.parametrize("name", NAMES)
def test_actions_are_pinned_by_commit_with_their_version_beside(name: str) -> None:
    used = re.findall(r"^\s+- uses: (.+)$|^\s+uses: ((?!\./).+)$", text_of(name), re.MULTILINE)
    assert len(used) == len([step for step in steps_of(name) if "uses" in step]) > 0
    lines = [first or second for first, second in used]
    assert [
        line for line in lines if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)
    ] == []


def test_one_action_is_one_commit_in_both() -> None:
    used = {action for name in NAMES for action in re.findall(r"uses: (\S+)@(\w+)", text_of(name))}
    assert len(used) == len({action for action, _ in used})


@pytest.mark.parametrize("name", NAMES)
def test_no_workflow_holds_or_reads_a_credential(name: str) -> None:
    text = text_of(name).replace("${{ secrets.OWNER_ID_KEY }}", "")  # this secret grants no access by itself
    assert not re.search(r"secrets\.|password|client-secret|creds:|AZURE_CREDENTIALS", text)
    identified = [
        job
        for job in workflow(name)["jobs"].values()
        if job.get("permissions", {}).get("id-token") == "write"
    ]
    assert workflow(name)["permissions"] == {"contents": "read"}
    assert len(identified) == (1 if name in ("deploy.yml", "proof.yml") else 0)
    assert all("environment" in job for job in identified)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_step_installs_finds_no_token_of_the_repository(name: str) -> None:
    checkouts = [step for step in steps_of(name) if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert all(step["with"] == {"persist-credentials": False} for step in checkouts)


@pytest.mark.parametrize("name", NAMES)
def test_no_job_runs_for_ever(name: str) -> None:
    assert [
        job
        for job, what in workflow(name)["jobs"].items()
        if "steps" in what and "timeout-minutes" not in what
    ] == []


def test_nothing_is_deployed_that_was_not_tested() -> None:
    jobs = workflow("deploy.yml")["jobs"]
    assert jobs["deploy"]["needs"] == "ci"
    assert jobs["ci"]["uses"] == "./.github/workflows/ci.yml"
    assert "workflow_call" in workflow("ci.yml")[True]


def test_a_deployment_is_given_every_variable_of_its_environment() -> None:
    (environment,) = [step for step in steps_of("deploy.yml") if step.get("name") == "The environment"]
    assert environment["env"] == {"VARIABLES": "${{ toJSON(vars) }}"}
    assert "azd env set --file" in environment["run"]


def test_a_deployment_knows_what_the_one_before_gave_out() -> None:
    commands = commands_of("deploy.yml")
    assert commands.index("azd env refresh") < commands.index("azd provision")
