"""The tool `python` in its real sandbox: its abilities, its limits, and the app's survival."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.access.models import UserContext
from shared.tools.base import ToolResult
from shared.tools.python_sandbox import PythonSandbox
from shared.tools.run_python import RunPython
from shared.tools.workspace import Workspace
from tests.contract.tools.python_attacks import EXHAUSTION, MODULES, OUTSIDE, REFLECTION, RESULTS
from tests.fakes.blob_store import InMemoryBlobStore

pytestmark = [pytest.mark.contract, pytest.mark.timeout(300)]
SECRET = "canary-5417"
FAILURES = {"InvalidQueryError", "TimeoutError", "BudgetExceededError", "ToolError"}


@pytest.fixture
async def python() -> AsyncIterator[RunPython]:
    sandbox = PythonSandbox()
    yield RunPython(sandbox)
    await sandbox.close()


async def test_a_program_reads_the_files_of_its_person(python: RunPython) -> None:
    blobs = InMemoryBlobStore()
    workspace = Workspace(blobs, UserContext(user_id="anna"))
    await workspace.write("rows.csv", "a;1\nb;2\n", "create")
    tool = replace(python, workspace=workspace)
    code = "sum(int(line.split(';')[1]) for line in files['rows.csv'].splitlines())"
    result = await tool.execute(code=code, inputs={"files": {}}, files=["rows.csv"])
    assert (result["success"], result["result"]) == (True, 3)
    foreign = replace(python, workspace=Workspace(blobs, UserContext(user_id="ben")))
    assert (await foreign.execute(code=code, files=["rows.csv"]))["type"] == "DocumentNotFoundError"
    assert (await tool.execute(code=code, files=["../rows.csv"]))["type"] == "InvalidQueryError"
    assert (await python.execute(code=code, files=["rows.csv"]))["type"] == "ConfigurationError"


@pytest.mark.parametrize(
    ("code", "inputs", "result"),
    [
        ("1 + 1", {}, 2),
        ("sum(row['eur'] for row in rows)", {"rows": [{"eur": 1.5}, {"eur": 2}]}, 3.5),
        ("from decimal import Decimal\nDecimal('0.1') + Decimal('0.2')", {}, "0.3"),
        ("from datetime import date\n(date(2026, 3, 1) - date(2026, 2, 1)).days", {}, 28),
        ("from datetime import date\ndate(2026, 3, 1)", {}, "2026-03-01"),
        ("sorted({3, 1, 2})", {}, [1, 2, 3]),
        ("{1: (2, None)}", {}, {"1": [2, None]}),
        ("float('nan')", {}, "nan"),
        ("x = 1", {}, None),
        ("import time\ntime.sleep(3600)\n'at once'", {}, "at once"),
        ("'Größe 10 µm'", {}, "Größe 10 µm"),
    ],
)
async def test_it_calculates(python: RunPython, code: str, inputs: dict[str, Any], result: Any) -> None:
    ran = await python.execute(code=code, inputs=inputs)
    assert ran["success"], ran
    assert ran["result"] == result
    assert (ran["engine"], ran["stdout"]) == ("monty", "")


async def test_what_it_prints_and_what_goes_wrong_are_told(python: RunPython) -> None:
    assert (await python.execute(code="print('a', 1)"))["stdout"] == "a 1\n"
    failed = await python.execute(code="x = 0\n1 / x")
    assert (failed["type"], failed["error"]) == (
        "InvalidQueryError",
        "ZeroDivisionError in line 2: division by zero",
    )
    assert (await python.execute(code="def f(:"))["type"] == "InvalidQueryError"
    assert (await python.execute(code="while True: pass"))["type"] == "TimeoutError"
    assert (await python.execute(code="[0] * 10**9"))["type"] == "BudgetExceededError"
    assert (await python.execute(code="x" * 20_001))["type"] == "InvalidQueryError"


async def test_programs_know_nothing_of_each_other(python: RunPython) -> None:
    async def own(number: int) -> ToolResult:
        return await python.execute(
            code="x = number\nimport json\njson.own = x\nx", inputs={"number": number}
        )

    await asyncio.gather(*(own(number) for number in range(20)))
    seen = await asyncio.gather(*(python.execute(code="x") for _ in range(20)))
    assert {one["error"] for one in seen} == {"NameError in line 1: name 'x' is not defined"}


@pytest.mark.attack("sandbox")
@pytest.mark.parametrize(
    "programs",
    [REFLECTION, MODULES, OUTSIDE, pytest.param(EXHAUSTION, marks=pytest.mark.e2e), RESULTS],
    ids=["reflection", "modules", "outside", "exhaustion", "results"],
)
async def test_nothing_leaves_the_sandbox_and_the_app_goes_on(
    python: RunPython, programs: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = tmp_path / "canary.txt"
    canary.write_text(SECRET)
    monkeypatch.setenv("GROUNDWORK_CANARY", SECRET)
    for program in programs:
        code = program.replace("{canary}", str(canary)).replace("{{", "{").replace("}}", "}")
        ran = await python.execute(code=code)
        assert not ran["success"], (code, ran)
        assert ran["type"] in FAILURES, (code, ran)
        assert SECRET not in str(ran), code
        assert len(str(ran)) < 1000, code
        assert (await python.execute(code="6 * 7"))["result"] == 42, code
    assert canary.read_text() == SECRET
    assert not Path("/tmp/groundwork-escaped").exists()


def test_there_are_two_hundred_attacks() -> None:
    assert len({*REFLECTION, *MODULES, *OUTSIDE, *EXHAUSTION, *RESULTS}) >= 200
