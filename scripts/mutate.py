"""`make mutate`: make small changes to the pure modules, and report the changes that no test detects.

mutmut changes copies below build/mutation. `tests/mutation/modules.toml` names the modules, and the tests
that must fail for each mutant. `tests/mutation/excused.toml` lists the survivors that no test can kill, each
with its reason.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "tests/mutation"
WORK = ROOT / "build/mutation"
MIN_SCORE = 0.90
MAX_EXCUSED = 10
# The files and folders that the tests import or read, in addition to the mutated modules.
_COPIED = "cli docs evals functions host.json local orchestrations samples shared tests".split()


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Group(_Record):
    """A group of modules that are mutated together, and the tests that run against each mutant."""

    modules: tuple[str, ...] = Field(min_length=1)
    tests: tuple[str, ...] = Field(min_length=1)


class Survivor(_Record):
    """A mutant that no test detects, with the changed lines of a function before and after."""

    module: str
    function: str
    before: str
    after: str


class Excuse(Survivor):
    """A survivor that no test can detect, because the change has no effect."""

    reason: str = Field(min_length=10)


class Mutant(Survivor):
    """A changed function and the result of its tests. The status `timed out` counts as killed."""

    status: str


class ModuleResult(_Record):
    """The mutants of one module. `score` is the share of killed mutants, without the excused ones."""

    mutants: int
    excused: int
    score: float
    survivors: tuple[Survivor, ...]


class Report(_Record):
    """The results of all modules, and whether they pass.

    Attributes:
        unused_excuses: excuses whose mutant was killed or doesn't exist any more.
        passed: whether each module's score is at least MIN_SCORE, every survivor is excused and no excuse is
            unused.
    """

    passed: bool
    score: float
    mutants: int
    seconds: float
    unused_excuses: tuple[Excuse, ...]
    modules: dict[str, ModuleResult]


def main() -> int:
    """Test the mutants of the groups named on the command line, or of all groups. Return 1 if the report
    doesn't pass.
    """
    parser = argparse.ArgumentParser(prog="python -m scripts.mutate", description=__doc__)
    parser.add_argument(
        "groups", nargs="*", help="names of groups in tests/mutation/modules.toml (default: all)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=WORK / "report.json",
        help="path of the JSON report to write (default: %(default)s)",
    )
    arguments = parser.parse_args()
    groups = read_groups()
    if unknown := sorted(set(arguments.groups) - groups.keys()):
        parser.error(f"unknown groups: {', '.join(unknown)}; there are {', '.join(groups)}")
    started = time.monotonic()
    mutants = [mutant for name in arguments.groups or groups for mutant in run_group(name, groups[name])]
    report = report_of(mutants, read_excuses(), time.monotonic() - started)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(report.model_dump_json(indent=2), encoding="utf-8")
    print(summary(report))
    return 0 if report.passed else 1


def read_groups() -> dict[str, Group]:
    """Return the groups of modules by name, in the order in which they run."""
    text = (CONFIG / "modules.toml").read_text(encoding="utf-8")
    return {name: Group.model_validate(group) for name, group in tomllib.loads(text).items()}


def read_excuses() -> tuple[Excuse, ...]:
    """Return the accepted survivors with their reasons."""
    text = (CONFIG / "excused.toml").read_text(encoding="utf-8")
    return tuple(Excuse.model_validate(item) for item in tomllib.loads(text).get("excused", ()))


def run_group(name: str, group: Group) -> list[Mutant]:
    """Run the tests of a group against each mutant of its modules, and return the results.

    Raises:
        SystemExit: if the tests fail without any change.
    """
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for entry in _COPIED:
        (folder / entry).symlink_to(ROOT / entry)
    (folder / "pyproject.toml").write_text(_configuration(group), encoding="utf-8")
    results = folder / "results.json"
    print(f"{name}: {', '.join(group.modules)}", flush=True)
    with (folder / "log.txt").open("wb") as log:
        command = [sys.executable, str(ROOT / "scripts/mutate_group.py"), str(results)]
        # With PYTHONDONTWRITEBYTECODE, every process would compile the tests again.
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        subprocess.run(command, cwd=folder, env=environment, stdout=log, stderr=log, check=False)
    if not results.exists():
        sys.exit(f"The group {name} could not be run; see {folder / 'log.txt'}")
    return [Mutant.model_validate(item) for item in json.loads(results.read_text(encoding="utf-8"))]


def _configuration(group: Group) -> str:
    """Return the project's pyproject.toml extended by the settings of mutmut."""
    tests = [str(path.relative_to(ROOT)) for pattern in group.tests for path in sorted(ROOT.glob(pattern))]
    settings = {
        "source_paths": group.modules,
        "also_copy": _COPIED,
        "pytest_add_cli_args_test_selection": tests,
        "pytest_add_cli_args": ["-m", "not e2e", "-p", "no:cacheprovider"],
        # A mutant in an endless loop is stopped after five times the sum of its usual test time and 2 s.
        "timeout_constant": 2.0,
        "timeout_multiplier": 5.0,
        "use_git_change_detection": False,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    return "\n".join([(ROOT / "pyproject.toml").read_text(encoding="utf-8"), "[tool.mutmut]", *lines, ""])


def report_of(mutants: Sequence[Mutant], excuses: Sequence[Excuse], seconds: float) -> Report:
    """Return the report on all mutants. Excuses for modules that were not tested are ignored."""
    unused = Counter(_identity(excuse) for excuse in excuses)
    by_module: dict[str, list[Mutant]] = {}
    excused: Counter[str] = Counter()
    survivors: dict[str, list[Survivor]] = {}
    for mutant in mutants:
        by_module.setdefault(mutant.module, []).append(mutant)
        unexcused = survivors.setdefault(mutant.module, [])
        if mutant.status == "survived" and unused[_identity(mutant)] > 0:
            unused[_identity(mutant)] -= 1
            excused[mutant.module] += 1
        elif mutant.status == "survived":
            unexcused.append(Survivor(**mutant.model_dump(exclude={"status"})))
    modules = {
        module: ModuleResult(
            mutants=len(changes),
            excused=excused[module],
            score=_score(len(changes) - excused[module], len(survivors[module])),
            survivors=tuple(survivors[module]),
        )
        for module, changes in by_module.items()
    }
    superfluous = tuple(
        excuse for excuse in excuses if excuse.module in modules and unused[_identity(excuse)] > 0
    )
    return Report(
        passed=_passes(modules, superfluous, len(excuses)),
        score=_score(len(mutants) - excused.total(), sum(map(len, survivors.values()))),
        mutants=len(mutants),
        seconds=round(seconds, 1),
        unused_excuses=superfluous,
        modules=modules,
    )


def _identity(change: Survivor) -> tuple[str, str, str, str]:
    return change.module, change.function, change.before, change.after


def _score(mutants: int, survivors: int) -> float:
    return round(1 - survivors / mutants, 4) if mutants else 1.0


def _passes(modules: Mapping[str, ModuleResult], unused: Sequence[Excuse], excuses: int) -> bool:
    complete = all(module.score >= MIN_SCORE and not module.survivors for module in modules.values())
    return bool(modules) and complete and not unused and excuses <= MAX_EXCUSED


def summary(report: Report) -> str:
    """Return the scores of all modules, and the change of every survivor, as text."""
    lines = [
        f"{module.score:6.1%}  {module.mutants:5} mutants, {module.excused} excused  {name}"
        for name, module in report.modules.items()
    ]
    for module in report.modules.values():
        for survivor in module.survivors:
            lines += [
                f"{survivor.module} {survivor.function}",
                f"  - {survivor.before}",
                f"  + {survivor.after}",
            ]
    lines += [
        f"Excused, but killed or gone: {excuse.function}: {excuse.after}" for excuse in report.unused_excuses
    ]
    verdict = "passed" if report.passed else "failed"
    return "\n".join(
        [*lines, f"{report.score:.1%} of {report.mutants} mutants, {report.seconds:.0f} s: {verdict}"]
    )


if __name__ == "__main__":
    sys.exit(main())
