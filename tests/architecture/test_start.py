"""The modules that a worker imports before its first request, because a cold start waits for all of them."""

import json
import subprocess
import sys
from functools import cache

from benchmarks.start.probes import AGENT_SETTINGS
from tests.architecture.source_tree import ROOT, is_within

# The imports of the three packages that every function app needs.
BASE = "import azure.functions, azure.durable_functions, azurefunctions.extensions.http.fastapi"
PRINT = "import json, sys; print(json.dumps(sorted(sys.modules)))"

# Modules of the app that are needed to reject invalid settings and to register functions. All other modules
# are imported with the first handler, activity or orchestrator that needs them
# (`shared/platform/loading.py`).
EARLY = (
    "shared.platform",
    "shared.platform.database_sources",
    "shared.platform.errors",
    "shared.platform.instances",
    "shared.platform.language_models",
    "shared.platform.language_models.protocol",
    "shared.platform.listed_people",
    "shared.platform.loading",
    "shared.platform.memory",
    "shared.platform.models",
    "shared.platform.names",
    "shared.platform.settings",
    "shared.platform.settings_groups",
    "shared.platform.settings_groups.access",
    "shared.platform.settings_groups.answers",
    "shared.platform.settings_groups.base",
    "shared.platform.settings_groups.documents",
    "shared.platform.settings_groups.services",
    "shared.platform.settings_groups.values",
    "shared.platform.telemetry",
    "shared.platform.tracing",
    "shared.runs",
    "shared.runs.log_lines",
    "shared.wiring",
)
# Orchestrators, and modules that only they use. `orchestrations.registration` imports them when they are
# called.
GENERATORS = (
    "orchestrations.fan_out",
    "orchestrations.ingest_document",
    "orchestrations.reply_in_channel",
    "orchestrations.run_agent",
)
# Packages loaded by these imports. All other packages must be imported only when they are used.
PACKAGES_AT_START = (
    *("functions", "orchestrations", "shared", "function_app"),
    "pydantic",  # settings are validated at startup
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
    assert {"function_app", "functions.ingest", "orchestrations.registration"} <= loaded_by_the_app()


def test_a_start_loads_no_route() -> None:
    assert "functions.api" not in loaded_by_the_app()
    assert "functions.background" not in loaded_by_the_app()
    assert "orchestrations.activities" not in loaded_by_the_app()
    assert "functions.chat" not in loaded_by_the_app()


def test_a_start_loads_nothing_that_only_work_needs() -> None:
    modules = {module for module in loaded_by_the_app() if is_within(module, "shared")} - {"shared", *EARLY}
    assert modules == set(), "register what needs it by name, as functions/triggers.py does"


def test_a_start_loads_no_generator_of_an_orchestration() -> None:
    assert loaded_by_the_app().isdisjoint(GENERATORS), "register it in orchestrations/registration.py"


def test_a_start_loads_no_further_package() -> None:
    packages = {module.partition(".")[0] for module in loaded_by_the_app()}
    standard = set(sys.stdlib_module_names)
    assert packages - standard - set(PACKAGES_AT_START) == set()
