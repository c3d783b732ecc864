"""The event streams of complete questions must equal the golden files.

`make golden` rewrites the files after an intended change. Review the differences like code.
"""

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.golden import answers, delegations, dialogues, failures, tools
from tests.golden.scenario import SCENARIOS, Scenario
from tests.golden.stage import Driver, open_stage

# Importing these modules registers their scenarios.
_MODULES = (answers, delegations, dialogues, failures, tools)
_FOLDER = Path(__file__).parent / "streams"


def _cases() -> Iterator[Any]:
    for scenario in SCENARIOS.values():
        for driver in scenario.drivers:
            marks = [pytest.mark.e2e] if scenario.is_slow else []
            yield pytest.param(scenario, driver, id=f"{scenario.name}-{driver}", marks=marks)


@pytest.mark.parametrize(("scenario", "driver"), list(_cases()))
async def test_stream_is_the_golden_one(
    scenario: Scenario,
    driver: Driver,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> None:
    parts = {name: make() for name, make in scenario.parts.items()}
    async with open_stage(driver, tmp_path, monkeypatch, scenario.settings, parts) as stage:
        await scenario.play(stage)
        stage.model.require_end()
    path = _FOLDER / f"{scenario.name}.txt"
    if pytestconfig.getoption("--update", default=False) and driver == "durable":
        path.write_text(stage.text, encoding="utf-8")
    difference = "".join(_difference(path, stage.text))
    assert not difference, f"{driver} streams of {scenario.name} changed:\n{difference}"


def test_each_golden_file_has_a_scenario() -> None:
    assert {path.stem for path in _FOLDER.iterdir()} == SCENARIOS.keys()


def _difference(path: Path, text: str) -> Iterator[str]:
    golden = path.read_text(encoding="utf-8") if path.exists() else ""
    before, after = (part.splitlines(keepends=True) for part in (golden, text))
    return difflib.unified_diff(before, after, fromfile=path.name, tofile="now", n=6)
