"""The whole local stack for tests, as the fixture `stack`; tests/e2e/conftest.py makes it known.

One per session, on free ports, in a temporary folder, with the samples ingested.
"""

import os
from collections.abc import Iterator

import pytest

from local.run_all.app_settings import ENDPOINT_NAMES
from local.run_all.demo import bring_samples
from local.run_all.sample_documents import ProgressBar
from local.run_all.stack import LocalStack
from local.run_all.stack_settings import FREE_PORTS, StackSettings


def environment_without_model() -> dict[str, str]:
    """This process's environment, with no model endpoint of the person who runs the tests."""
    return {name: value for name, value in os.environ.items() if name not in ENDPOINT_NAMES}


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A running stack that knows the samples."""
    folder = tmp_path_factory.mktemp("stack")
    with LocalStack(StackSettings(FREE_PORTS, folder), environment=environment_without_model()) as running:
        bring_samples(running, ProgressBar())
        yield running
