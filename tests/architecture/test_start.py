"""What a worker imports before it answers anything: a cold start waits for all of it (benchmarks/start)."""

import json
import subprocess
import sys
from functools import cache

import pytest

from benchmarks.start.probes import AGENT_SETTINGS
from tests.architecture.source_tree import ROOT, is_within

# What the three packages that no function app can do without import themselves.
BASE = "import azure.functions, azure.durable_functions, azurefunctions.extensions.http.fastapi"
PRINT = "import json, sys; print(json.dumps(sorted(sys.modules)))"

# Of ours. Wire models, loops and effects are imported inside the handler, activity or orchestrator that uses
# them (`# Imported when used`); annotations take them from below `if TYPE_CHECKING:`, in quotes.
LATE = (
    "shared.agents",
    "shared.clients",
    "shared.ingestion",
    "shared.retrieval",
    "shared.identity",
    "shared.core",
    "shared.models",
)
# Of these rooms, what is needed to refuse wrong settings, to open a span, to register a trigger.
EARLY = (
    "shared.core.trace_context",
    "shared.models.base",
    "shared.models.events",
    "shared.models.model_features",
    "shared.models.names",
    "shared.models.tracing",
)
# Generators of orchestrations, and what only they use: `orchestrations.orchestrators` hands over to them.
GENERATORS = (
    "orchestrations.answer_question",
    "orchestrations.fan_out",
    "orchestrations.ingest_document",
    "orchestrations.reply_in_channel",
    "orchestrations.retries",
    "orchestrations.run_sub_agent",
    "orchestrations.summarize_documents",
)
# The packages that came with the base; everything else waits until it is used.
PACKAGES_AT_START = (
    *("functions", "orchestrations", "shared", "function_app"),
    *("pydantic", "pydantic_settings", "dotenv"),  # settings are checked at the start
)


def modules_after(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}\n{PRINT}"],
        cwd=ROOT,
        env={**AGENT_SETTINGS, "PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@cache
def loaded_by_the_app() -> frozenset[str]:
    return frozenset(modules_after("import function_app") - modules_after(BASE))


def test_the_app_is_loaded() -> None:
    assert {"function_app", "functions.chat", "orchestrations.orchestrators"} <= loaded_by_the_app()


@pytest.mark.parametrize("room", LATE)
def test_a_start_loads_nothing_of_rooms_that_only_work_needs(room: str) -> None:
    found = {module for module in loaded_by_the_app() if is_within(module, room)} - {room, *EARLY}
    assert found == set(), "import it where it is used, or below TYPE_CHECKING"


def test_a_start_loads_no_generator_of_an_orchestration() -> None:
    assert loaded_by_the_app().isdisjoint(GENERATORS), "register it in orchestrations/orchestrators.py"


def test_a_start_loads_no_further_package() -> None:
    packages = {module.partition(".")[0] for module in loaded_by_the_app()}
    standard = set(sys.stdlib_module_names)
    assert packages - standard - set(PACKAGES_AT_START) == set()
