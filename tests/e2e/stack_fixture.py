"""The whole local stack, as the fixture `stack` of tests/e2e/conftest.py.

Each test process has one stack, on free ports, in a temporary folder, with the samples ingested.
"""

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import pytest

from local.run_all.app_settings import ENDPOINT_NAMES, local_directory
from local.run_all.demo import ProgressBar, bring_samples
from local.run_all.stack import LocalStack
from local.run_all.stack_settings import Ports, StackError, StackSettings
from tests.e2e.access.people import PEOPLE
from tests.free_ports import find_free_port

# A run that reaches its time limit gives a shorter answer, which would break tests of other features.
PATIENT = {"MAX_TOTAL_LATENCY_MS": "90000", "MODEL_TIMEOUT_FACTOR": "3"}

_starting = threading.RLock()


class SharedStack(LocalStack):
    """A stack that many tests share, one after the other, some of them with different settings.

    After the settings were restored, the host starts only when a test reads an address, the settings or the
    process id. Consecutive tests with different settings therefore start the host once each, not twice.
    """

    _is_host_due = False

    def _start_if_due(self) -> None:
        with _starting:  # several threads of a test may read the address at the same time
            if not self._is_host_due:
                return
            try:
                self.start_host()
            except StackError:  # the current test fails, and the next test tries again
                self.kill_host()
                self._is_host_due = True
                raise

    @property
    def ports(self) -> Ports:
        """The ports in use. If a restart of the host is pending, reading them starts the host."""
        self._start_if_due()
        return self._ports

    @ports.setter
    def ports(self, ports: Ports) -> None:
        self._ports = ports

    @property
    def app_settings(self) -> dict[str, str]:
        """The settings of the host. If a restart is pending, reading them starts the host."""
        self._start_if_due()
        return self._app_settings

    @app_settings.setter
    def app_settings(self, settings: dict[str, str]) -> None:
        self._app_settings = settings

    @property
    def host_pid(self) -> int:
        """The process id of the host. If a restart is pending, reading it starts the host."""
        self._start_if_due()
        return super().host_pid

    def start_host(self, changes: Mapping[str, str] | None = None) -> None:
        self._is_host_due = False
        super().start_host(changes)

    def kill_host(self) -> None:
        if not self._is_host_due:
            super().kill_host()
        self._is_host_due = False

    def stop_host(self) -> None:
        if not self._is_host_due:
            super().stop_host()
        self._is_host_due = False

    def stop(self) -> None:
        self._is_host_due = False
        super().stop()

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Restore the settings on exit. The host with these settings is started only when a test needs it."""
        before = dict(self._app_settings)
        try:
            yield
        finally:
            self.kill_host()
            self.app_settings = before
            self._is_host_due = True


_running: list[SharedStack] = []


def environment_without_model() -> dict[str, str]:
    """Return this process's environment without the model endpoint that its user may have configured.

    The directory also contains the people of the access tests, and sharing of answers is enabled.
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
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedStack]:
    """Yield a running stack with the samples, shared by all tests of the process."""
    if _running:
        yield _running[0]
        return
    folder = tmp_path_factory.mktemp("stack")
    with SharedStack(settings_for(folder), PATIENT, environment_without_model()) as running:
        bring_samples(running, ProgressBar())
        _running.append(running)
        yield running  # this fixture starts first, so it is torn down last
        _running.clear()
