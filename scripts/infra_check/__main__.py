"""`make infra-check`: every static rule over infra/bicep and azure.yaml; exit code 0 without a fault.

What no static rule can show stands in docs/operations.md, "What only a subscription can show".
"""

import json
import sys
from functools import cache
from pathlib import Path

from pycep import BicepParser

from scripts.infra_check.agreement import agreement_faults
from scripts.infra_check.conditions import condition_faults
from scripts.infra_check.deployment import deployment_faults
from scripts.infra_check.parameters import parameter_faults
from scripts.infra_check.project import Project
from scripts.infra_check.reader import BicepFile, read
from scripts.infra_check.security import security_faults
from scripts.infra_check.settings import settings_faults
from scripts.infra_check.symbols import symbol_faults

ROOT = Path(__file__).resolve().parents[2]
_JSON = ("abbreviations.json", "main.parameters.json", "workbook.json")
# Routes that ask for no identity, as auth.bicep lists them (decision 0015, and health).
OPEN_ROUTES = frozenset({"/api/docs", "/api/docs/*", "/api/health", "/api/health/ready", "/api/openapi.json"})
TRIGGER = "blob_created"


def faults(root: Path = ROOT) -> list[str]:
    """Every fault of the deployment of the repository at `root`.

    Files that cannot be read come alone; the slow second parser is asked when nothing else is found.
    """
    bicep = root / "infra" / "bicep"
    files = [read(path) for path in sorted(bicep.rglob("*.bicep"))]
    if unreadable := [*_unreadable(files), *_broken_json(bicep)]:
        return unreadable
    return _disagreements(root, files) or _second_opinions(files)


def _disagreements(root: Path, files: list[BicepFile]) -> list[str]:
    by_path = {file.path.resolve(): file for file in files}
    project = Project(root, {file.path.name: file for file in files}, TRIGGER, OPEN_ROUTES)
    found = [fault for file in files for fault in symbol_faults(file, by_path)]
    found += _uncalled(files)
    found += security_faults(files)
    found += settings_faults(project)
    found += agreement_faults(project)
    found += deployment_faults(project)
    found += condition_faults(project)
    found += parameter_faults(project)
    return found


def _unreadable(files: list[BicepFile]) -> list[str]:
    return [
        f"{file.path.name}:{line}: cannot be read (tree-sitter)" for file in files for line in file.errors()
    ]


def _second_opinions(files: list[BicepFile]) -> list[str]:
    return [
        f"{file.path.name}: cannot be read (pycep): {said}"
        for file in files
        if (said := _second_opinion(file.text))
    ]


@cache
def _second_opinion(text: str) -> str:
    """What another parser, that of checkov, cannot read; empty when it reads all."""
    try:
        BicepParser().parse(text=text)
    except Exception as error:  # noqa: BLE001  # lark's errors have no common base that it exports
        return str(error).splitlines()[0] or type(error).__name__
    return ""


def _broken_json(bicep: Path) -> list[str]:
    found = []
    for name in _JSON:
        try:
            json.loads((bicep / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            found.append(f"{name}: {type(error).__name__}")
    return found


def _uncalled(files: list[BicepFile]) -> list[str]:
    called = {(file.path.parent / module.target).resolve() for file in files for module in file.of("module")}
    by_a_hook = {"main.bicep", "event-subscription.bicep"}
    return [
        f"{file.path.name}: nothing deploys it"
        for file in files
        if file.path.name not in by_a_hook and file.path.resolve() not in called
    ]


if __name__ == "__main__":
    told = faults()
    count = len(list((ROOT / "infra" / "bicep").rglob("*.bicep")))
    said = f"{len(told)} {'fault' if len(told) == 1 else 'faults'}" if told else "no fault"
    print("\n".join([*told, f"infra/bicep, azure.yaml, host.json: {said} found in {count} Bicep files."]))
    sys.exit(1 if told else 0)
