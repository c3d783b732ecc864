"""Bot code is imported only when a channel writes, so that it doesn't slow down the start of the app."""

import os
import subprocess
import sys

import pytest

from benchmarks.start.probes import AGENT_SETTINGS
from tests.architecture.source_tree import ROOT

pytestmark = pytest.mark.contract

START = """
import sys
import function_app
from shared.wiring import get_services
get_services()
print(*sorted(sys.modules), sep="\\n")
print(*("function " + one.get_function_name() for one in function_app.app.get_functions()), sep="\\n")
"""
OF_CHANNELS = ("microsoft_agents", "msal", "jwt", "shared.teams.dispatch", "shared.teams.replies")


@pytest.fixture(name="loaded", scope="module")
def make_loaded() -> list[str]:
    """Return the modules of a process that has started but served no request."""
    environment = {**os.environ, **AGENT_SETTINGS, "BOT_LOCAL_ANONYMOUS": "true"}
    done = subprocess.run(
        [sys.executable, "-c", START], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_the_route_is_there(loaded: list[str]) -> None:
    assert "function messages" in loaded


def test_what_belongs_to_channels_is_not_imported_before_one_writes(loaded: list[str]) -> None:
    assert [name for name in loaded if name.startswith(OF_CHANNELS)] == []
