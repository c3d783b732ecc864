"""The steps of the proof kit in execution order, with the platform operations that each needs."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from evals.azure_proof import answers, cost, documents, platform_checks, screenshots
from evals.azure_proof.evidence import Evidence, Outcome, StepResult
from evals.azure_proof.target import Target, World

DEPLOY, TEARDOWN = "deploy", "teardown"


@dataclass(frozen=True)
class Step:
    """A step of the proof kit.

    Attributes:
        advice: what to do if it fails.
        platform_calls: the target's operations that it uses; a dry run performs only these.
    """

    name: str
    title: str
    run: Callable[[World, Evidence], Outcome]
    advice: str
    platform_calls: Callable[[Target], object] = lambda _target: None


def _of(run: Callable[[World], Outcome]) -> Callable[[World, Evidence], Outcome]:
    return lambda world, _evidence: run(world)


def _drop_calls(target: Target) -> None:
    target.write_blob("proof/NAME.md.acl.json", Path("access.json"))
    target.write_blob("proof/NAME.md", Path("file.md"))
    target.delete_blob("proof/NAME.md")
    target.delete_blob("proof/NAME.md.acl.json")


def _narrow_calls(target: Target) -> None:
    target.write_blob("proof/NAME.md.acl.json", Path("access.json"))
    target.write_blob("proof/NAME.md", Path("file.md"))
    target.write_blob("proof/NAME.md.acl.json", Path("access.json"))
    target.delete_blob("proof/NAME.md")
    target.delete_blob("proof/NAME.md.acl.json")


def _deploy_calls(target: Target) -> None:
    target.deploy()
    target.facts()


STEPS = (
    Step(
        "prerequisites",
        "Prerequisites",
        lambda world, _: world.target.prerequisites(),
        "Install the listed programs, sign in, or choose another region; docs/deploy.md, Before you start.",
        lambda target: target.prerequisites(),
    ),
    Step(
        DEPLOY,
        "Deployment",
        lambda world, _: world.target.deploy(),
        "Read the end of the output; `azd up` may be repeated. docs/troubleshooting.md lists the errors.",
        _deploy_calls,
    ),
    Step(
        "upload",
        "Ten documents are uploaded and read",
        _of(documents.upload_samples),
        "Look at the failed document's reason in the page, and at the app's log.",
        lambda target: target.token(),
    ),
    Step(
        "questions",
        "Twenty questions with known answers",
        _of(answers.ask_questions),
        "Compare the answers in the page; a wrong model or search service shows here first.",
        lambda target: target.token(),
    ),
    Step(
        "drop",
        "A file is dropped into storage, and deleted",
        _of(documents.drop_and_delete),
        "Event subscriptions: `azd hooks run postdeploy`; then the container event-dead-letters.",
        _drop_calls,
    ),
    Step(
        "narrow",
        "A permission is narrowed",
        _of(documents.narrow_permission),
        "Take the app offline: users can read documents without permission.",
        _narrow_calls,
    ),
    Step(
        "restart",
        "The app is restarted during a question",
        _of(answers.restart_during_question),
        "Read the run at /api/runs/ID; the log event run.restarted shows which step was repeated.",
        lambda target: target.restart(),
    ),
    Step(
        "platform",
        "Functions, sign-in and headers",
        _of(platform_checks.platform),
        "See docs/internals/first-deployment.md. If a forged identity is accepted, take the app offline.",
        lambda target: target.functions(),
    ),
    Step(
        "scores",
        "Both parts of a hybrid query's score",
        _of(platform_checks.search_scores),
        "The role Search Index Data Reader may not be effective yet; repeat the step.",
        lambda target: target.hybrid_scores("content-blocks", "What is the maximum operating pressure?"),
    ),
    Step(
        "pace",
        "Time to the first event, and per hop",
        _of(platform_checks.pace),
        "Configure always-ready instances, or check the region of the models.",
        lambda target: target.token(),
    ),
    Step(
        "cold-start",
        "Cold start",
        _of(platform_checks.cold_start),
        "Configure always-ready instances, or check APP_PYTHON_VERSION.",
        lambda target: target.cool_down(),
    ),
    Step(
        "throttling",
        "More requests than the limit allows",
        _of(platform_checks.throttling),
        "Check RATE_LIMIT_PER_MINUTE; with several instances, requests are counted in storage.",
        lambda target: target.token(),
    ),
    Step(
        "screenshots",
        "Pictures of the web page",
        _of(screenshots.take_pictures),
        "Open the page by hand, or set CHROMIUM to the path of a browser.",
        lambda target: target.token(),
    ),
    Step(
        "cost",
        "Cost",
        cost.estimate,
        "The meter is at /api/me.",
        lambda target: target.bill_command(),
    ),
    Step(
        TEARDOWN,
        "Everything is removed",
        lambda world, _: world.target.teardown(),
        "Delete the resource group by hand, or it costs money: az group delete --name NAME.",
        lambda target: target.teardown(),
    ),
)
ORDER = tuple(step.name for step in STEPS)


def perform(step: Step, world: World, evidence: Evidence) -> StepResult:
    """Perform a step. An exception becomes a failed result, so that the remaining steps and the teardown
    still run.
    """
    at, began = datetime.now(UTC), time.monotonic()
    try:
        outcome = step.run(world, evidence)
        passed = all(one.passed for one in outcome.checks)
    except Exception as failed:  # noqa: BLE001  # written down, with its kind and its words
        note = " ".join(f"{type(failed).__name__}: {failed}".split())
        outcome, passed = Outcome(notes=(note[:1000],)), False
    is_skipped = passed and not outcome.checks and any(note.startswith("Skipped") for note in outcome.notes)
    return StepResult(
        name=step.name,
        title=step.title,
        status="skipped" if is_skipped else "passed" if passed else "failed",
        at=at,
        seconds=round(time.monotonic() - began, 1),
        outcome=outcome,
        advice="" if passed else step.advice,
    )
