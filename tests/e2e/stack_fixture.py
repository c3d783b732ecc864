"""The whole local stack, as the fixture `stack` of tests/e2e/conftest.py.

One per test process, on free ports, in a temporary folder, with the samples ingested.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from local.run_all.app_settings import ENDPOINT_NAMES, local_directory
from local.run_all.demo import ProgressBar, bring_samples
from local.run_all.stack import LocalStack
from local.run_all.stack_settings import Ports, StackSettings
from tests.e2e.access.people import PEOPLE
from tests.free_ports import find_free_port

# A run that is out of time answers with less, which tests that are not about time must not see.
PATIENT = {"MAX_TOTAL_LATENCY_MS": "90000", "MODEL_TIMEOUT_FACTOR": "3"}

_running: list[LocalStack] = []


def environment_without_model() -> dict[str, str]:
    """Return this process's environment without the model endpoint of the person who runs the tests.

    The directory knows the people of the tests of access, too, and answers can be shared.
    """
    environment = {name: value for name, value in os.environ.items() if name not in ENDPOINT_NAMES}
    listed = json.loads(local_directory())
    listed += [
        {"id": person.user_id, "name": person.user_id, "groups": [*person.groups, "another"]}
        for person in PEOPLE.values()
    ]
    return {**environment, "LOCAL_DIRECTORY": json.dumps(listed), "SHARING": "true"}


def settings_for(folder: Path) -> StackSettings:
    """Return settings of a separate stack: free ports, and data in the given folder."""
    return StackSettings(Ports(*(find_free_port() for _ in fields(Ports))), folder)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Yield a running stack with the samples, shared by all tests of the process."""
    if _running:
        yield _running[0]
        return
    folder = tmp_path_factory.mktemp("stack")
    with LocalStack(settings_for(folder), PATIENT, environment_without_model()) as running:
        bring_samples(running, ProgressBar())
        _running.append(running)
        yield running  # the first to start is torn down last
        _running.clear()
