"""Tests for the Azure proof kit: the commands it runs, its guaranteed clean-up and its report."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from evals.azure_proof import __main__ as kit
from evals.azure_proof.answers import checks_of_texts
from evals.azure_proof.azure import AzureTarget, Place
from evals.azure_proof.evidence import Evidence, Facts, Outcome, check
from evals.azure_proof.questions import QUESTIONS
from evals.azure_proof.report import markdown
from evals.azure_proof.shell import CommandFailedError, azure_calls
from evals.azure_proof.steps import ORDER, STEPS
from samples.generate import generate
from tests.architecture.source_tree import ROOT

PLACE = Place("proof", "SUB", "swedencentral", "westeurope")


class ScriptedShell:
    """A shell that returns the example or a configured answer, and fails for commands that contain
    `failing`.
    """

    def __init__(self, failing: str = "", answers: dict[str, str] | None = None) -> None:
        self.commands: list[str] = []
        self._failing = failing
        self._answers = answers or {}

    def run(self, *command: str, example: str = "", timeout_s: float = 600.0) -> str:
        text = " ".join(command)
        self.commands.append(text)
        if self._failing and self._failing in text:
            raise CommandFailedError(f"{text} failed")
        return next((answer for words, answer in self._answers.items() if words in text), example)


class FakeTarget:
    """A deployment target with one failing operation."""

    kind: Literal["azure"] = "azure"

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.called: list[str] = []

    @property
    def url(self) -> str:
        raise CommandFailedError("there is no app")

    def _call(self, name: str) -> Outcome:
        self.called.append(name)
        if name == self.failing:
            raise CommandFailedError("azd up failed (1): no quota")
        return Outcome(checks=(check(name, "done", passed=True),))

    def prerequisites(self) -> Outcome:
        return self._call("prerequisites")

    def deploy(self) -> Outcome:
        return self._call("deploy")

    def teardown(self) -> Outcome:
        return self._call("teardown")

    def facts(self) -> Facts:
        return Facts(target="azure", region="nowhere")

    def token(self) -> str:
        return "token"

    @contextmanager
    def slow_model(self) -> Iterator[None]:
        yield

    def __getattr__(self, name: str) -> Any:
        def unavailable(*_arguments: object) -> None:
            raise CommandFailedError(f"{name} is not here")

        return unavailable


def run(target: Any, out: Path, *arguments: str) -> Evidence:
    options = kit._arguments(["--subscription", "SUB", "--out", str(out), "--pause", "0", *arguments])
    chosen = [step for step in STEPS if not options.step or step.name in options.step]
    return kit._run(target, options, chosen, is_whole=not options.step)


def test_the_known_answers_stand_in_the_samples(tmp_path: Path) -> None:
    checks = checks_of_texts(generate(tmp_path))
    assert [one.expected for one in checks if not one.passed] == []
    assert (len(QUESTIONS), len(checks)) == (20, 18)


def test_a_dry_run_prints_every_command_and_calls_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")  # no command can be found
    assert kit.main(["--dry-run"]) == 0
    text = capsys.readouterr().out
    for command in ("azd up", "azd provision --preview", "azd down --purge", "az functionapp restart"):
        assert f"$ {command}" in text
    for script in ("infra/registration.sh", "infra/hooks/postdeploy.sh"):
        assert [line for line in azure_calls(ROOT / script) if line not in text] == []
    assert "az ad app create" in text
    assert "CostManagement" in text


def test_a_real_run_calls_nothing_that_the_dry_run_does_not_print(capsys: pytest.CaptureFixture[str]) -> None:
    kit.main(
        ["--dry-run", "--subscription", "SUB", "--openai-location", "westeurope", "--environment", "proof"]
    )
    printed = capsys.readouterr().out.replace("'", "").replace('"', "")
    shell = ScriptedShell()
    target = AzureTarget(PLACE, shell, ROOT, sleep=lambda _seconds: None, health=lambda _url: "ok")
    for step in STEPS:
        step.platform_calls(target)
    assert len(shell.commands) > 30
    assert [one for one in shell.commands if one.replace("'", "").replace('"', "") not in printed] == []


def test_too_little_quota_and_a_missing_program_are_named_before_anything_is_made() -> None:
    shell = ScriptedShell(failing="azd version", answers={"usage list": "[100, 80]"})
    checks = AzureTarget(PLACE, shell, ROOT).prerequisites().checks
    failed = {one.expected: one.seen for one in checks if not one.passed}
    assert failed == {
        "azd 1.26 or newer": "azd version --output json failed",
        "quota for the chat model": "20 thousand tokens per minute are available, 30 are needed",
        "quota for the embedding model": "20 thousand tokens per minute are available, 120 are needed",
    }
    assert not any("azd env new" in command or "azd up" in command for command in shell.commands)


def test_a_group_that_is_still_there_fails_the_teardown() -> None:
    target = AzureTarget(PLACE, ScriptedShell(answers={"group exists": "true"}), ROOT)
    assert [one.passed for one in target.teardown().checks] == [False]


def test_whatever_fails_everything_is_removed_and_the_report_says_what_to_do(tmp_path: Path) -> None:
    target = FakeTarget(failing="deploy")
    evidence = run(target, tmp_path)
    assert target.called == [
        "prerequisites",
        "deploy",
        "teardown",
    ]  # an app that doesn't exist receives no requests
    assert [(one.name, one.status) for one in evidence.steps] == [
        ("prerequisites", "passed"),
        ("deploy", "failed"),
        ("teardown", "passed"),
    ]
    page = (tmp_path / "evidence.md").read_text()
    assert "no quota" in page
    assert "--step deploy" in page


def test_a_failed_step_leaves_the_rest_running(tmp_path: Path) -> None:
    evidence = run(FakeTarget(), tmp_path)
    assert [one.name for one in evidence.steps] == list(ORDER)
    assert {one.name: one.status for one in evidence.steps}["restart"] == "failed"
    assert evidence.steps[-1].status == "passed"


def test_one_step_is_repeated_alone_and_the_others_keep_their_results(tmp_path: Path) -> None:
    run(FakeTarget(failing="prerequisites"), tmp_path)
    target = FakeTarget()
    evidence = run(target, tmp_path, "--step", "prerequisites")
    assert target.called == ["prerequisites"]
    assert {one.name: one.status for one in evidence.steps}["prerequisites"] == "passed"
    stored = json.loads((tmp_path / "evidence.json").read_text())
    assert [one["name"] for one in stored["steps"]] == [one.name for one in evidence.steps]
    assert "teardown" in [one.name for one in evidence.steps]


def test_a_cell_of_the_report_breaks_no_table() -> None:
    evidence = Evidence.model_validate(
        {
            "commit": "c",
            "begun_at": "2026-11-24T12:00:00Z",
            "facts": {"target": "local"},
            "steps": [
                {
                    "name": "drop",
                    "title": "A file",
                    "status": "passed",
                    "at": "2026-11-24T12:00:00Z",
                    "seconds": 1,
                    "outcome": {"checks": [{"expected": "a|b", "seen": "x\n<y>", "passed": True}]},
                }
            ],
        }
    )
    assert "| a\\|b | x &lt;y> | ✓ |" in markdown(evidence)
    assert "Every step passed. 1 of 1 checks hold." in markdown(evidence)
