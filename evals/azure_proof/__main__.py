"""`python -m evals.azure_proof`: prove that a deployment works, in Azure or on a local stack.

Deploys the app under its own name, uploads the samples, asks questions with known answers, drops a file,
narrows a permission, restarts the app during a question, checks platform behaviour, estimates the cost, and
deletes everything. Writes evidence.json, evidence.md and screenshots. Steps can be repeated individually
while the deployment exists. Exit code 0 only if every step passed.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evals.azure_proof.azure import AzureTarget, Place
from evals.azure_proof.evidence import Evidence, Facts, load, save
from evals.azure_proof.local_target import LocalTarget
from evals.azure_proof.report import markdown
from evals.azure_proof.shell import DryShell, RealShell
from evals.azure_proof.steps import DEPLOY, ORDER, STEPS, TEARDOWN, Step, perform
from evals.azure_proof.target import Target, World

ROOT = Path(__file__).resolve().parents[2]
_MARKS = {"passed": "ok", "failed": "FAILED", "skipped": "skipped"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps chosen on the command line, and return the exit code."""
    options = _arguments(arguments)
    if options.dry_run:
        return _dry_run(_place(options))
    chosen = [step for step in STEPS if not options.step or step.name in options.step]
    options.out.mkdir(parents=True, exist_ok=True)
    if options.local:
        return _run_locally(options, chosen)
    azure = AzureTarget(_place(options), RealShell(ROOT, _show), ROOT)
    evidence = _run(azure, options, chosen, is_whole=not options.step)
    return _exit_code(evidence, chosen)


def _run_locally(options: argparse.Namespace, chosen: list[Step]) -> int:
    """Run the steps on a local stack, which is started for this call and stopped afterwards. A call with a
    single step reuses the data of earlier calls.
    """
    target = LocalTarget((options.out / "stack").resolve(), ROOT)
    try:
        if DEPLOY not in [step.name for step in chosen]:
            target.deploy()
        evidence = _run(target, options, chosen, is_whole=not options.step)
    finally:
        target.stop()
    return _exit_code(evidence, chosen)


def _run(target: Target, options: argparse.Namespace, chosen: list[Step], *, is_whole: bool) -> Evidence:
    """Perform the chosen steps, and save the evidence after each one.

    A complete run stops early if the app can't be deployed, and always ends with the teardown, unless
    `--keep`.
    """
    world = World(target, options.out, options.pause)
    evidence = load(options.out, _commit(), Facts(target=target.kind))
    if is_whole:
        evidence = evidence.model_copy(update={"steps": ()})
    remaining = [step for step in chosen if not (is_whole and step.name == TEARDOWN)]
    try:
        for step in remaining:
            evidence = _perform(step, world, evidence, options.out)
            if is_whole and step.name in ORDER[:2] and evidence.steps[-1].status == "failed":
                break
    finally:
        if is_whole and not options.keep:
            evidence = _perform(STEPS[-1], world, evidence, options.out)
    return evidence


def _perform(step: Step, world: World, evidence: Evidence, out: Path) -> Evidence:
    _show(f"{step.title} …")
    result = perform(step, world, evidence)
    if result.status != "failed" and step.name == DEPLOY:
        evidence = evidence.model_copy(update={"facts": world.target.facts()})
    evidence = evidence.with_step(result, ORDER)
    save(evidence, out)
    (out / "evidence.md").write_text(markdown(evidence), encoding="utf-8")
    _show(f"  {_MARKS[result.status]} after {result.seconds} s")
    for check in result.outcome.checks:
        if not check.passed:
            _show(f"  expected: {check.expected}; seen: {check.seen}")
    if result.status == "failed":
        for note in result.outcome.notes:
            _show(f"  {note}")
        _show(f"  {result.advice} Repeat it with --step {step.name}.")
    return evidence


def _dry_run(place: Place) -> int:
    """Print the commands that each step would run, in order, without running them."""
    target = AzureTarget(
        place, DryShell(ROOT, _show), ROOT, sleep=lambda _seconds: None, health=lambda _url: "ok"
    )
    for step in STEPS:
        _show(step.title)
        step.platform_calls(target)
    _show(f"Command for the bill, which is available the next day:\n  $ {target.bill_command()}")
    return 0


def _exit_code(evidence: Evidence, chosen: list[Step]) -> int:
    names = {step.name for step in chosen}
    return int(any(one.status == "failed" for one in evidence.steps if one.name in names))


def _place(options: argparse.Namespace) -> Place:
    places = options.location, options.openai_location
    return Place(options.environment, options.subscription, *places, as_application=options.as_application)


def _commit() -> str:
    command = ["git", "rev-parse", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _show(text: str) -> None:
    print(text, flush=True)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    options: argparse.Namespace = parser.parse_args(arguments)
    if options.pause is None:
        # According to the documentation, idle instances are removed after some minutes (not measured).
        options.pause = 0.0 if options.local else 900.0
    if not (options.local or options.dry_run or options.subscription):
        parser.error("--subscription is required; --dry-run prints the commands without a subscription")
    options.subscription = options.subscription or "SUBSCRIPTION"
    return options


def _parser() -> Any:
    parser: Any = argparse.ArgumentParser(
        prog="python -m evals.azure_proof",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--local", action="store_true", help="Use a separate local stack instead of Azure.")
    parser.add_argument(
        "--dry-run", action="store_true", help=("Only print the Azure commands, without running them.")
    )
    parser.add_argument(
        "--step",
        action="append",
        choices=ORDER,
        help="Run only this step. Repeat the option for several steps (default: all steps).",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("build/proof"),
        help="Folder for the evidence (default: %(default)s).",
    )
    parser.add_argument("--keep", action="store_true", help="Keep the Azure resources after a complete run.")
    parser.add_argument(
        "--pause",
        type=float,
        default=None,
        help="Time without requests before the cold start, in seconds (default: 900 in Azure).",
    )
    parser.add_argument(
        "--environment",
        default="groundwork-proof",
        help="Name of the azd environment (default: %(default)s).",
    )
    parser.add_argument(
        "--subscription", default="", help=("Id of the Azure subscription that pays for the resources.")
    )
    parser.add_argument(
        "--location", default="swedencentral", help="Region of the app (default: %(default)s)."
    )
    parser.add_argument(
        "--openai-location", default="swedencentral", help="Region of the models (default: %(default)s)."
    )
    parser.add_argument(
        "--as-application",
        action="store_true",
        help="Sign in to Azure as an application instead of a user, for pipelines.",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
