"""The local stack: Azurite, search server, model server and Functions host, each as a process.

Starts and stops them in order, and provides their addresses and credentials.
"""

import hashlib
import json
import os
import signal
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import BlobServiceClient, ContentSettings, CorsRule

from local.azurite.server import connection_string, start_azurite
from local.child_process import ChildProcess, start_child, wait_until_healthy
from local.run_all import process_record
from local.run_all.app_settings import ModelChoice, app_settings, choose_model, write_settings_file
from local.run_all.stack_settings import HOST, Ports, StackError, StackSettings, settle_ports
from local.run_all.tokens import (
    StackSecrets,
    host_key,
    load_or_make_secrets,
    mint_token,
    write_tokens_file,
)
from samples.acl import SampleUser


def ensure_container(connection_string: str, name: str) -> None:
    """Create a blob container unless it exists."""
    with BlobServiceClient.from_connection_string(connection_string) as service:
        try:
            service.create_container(name)
        except ResourceExistsError:
            return


def allow_uploads_from(connection_string: str, origin: str) -> None:
    """Allow browsers on the web page's origin to upload large files to storage, as infra/bicep does in
    Azure.
    """
    rule = CorsRule([origin], ["PUT"], allowed_headers=["*"], max_age_in_seconds=3600)
    with BlobServiceClient.from_connection_string(connection_string) as service:
        service.set_service_properties(cors=[rule])


def upload_changed(connection_string: str, container: str, files: Mapping[Path, dict[str, str]]) -> list[str]:
    """Upload the files whose content or metadata differs from the blob of the same name, and return their
    names.

    Unchanged files are skipped, so a second start ingests nothing.
    """
    uploaded = []
    with BlobServiceClient.from_connection_string(connection_string) as service:
        for path, metadata in files.items():
            content = path.read_bytes()
            digest = bytearray(hashlib.md5(content, usedforsecurity=False).digest())
            blob = service.get_blob_client(container, path.name)
            try:
                there = blob.get_blob_properties()
                is_current = there.content_settings.content_md5 == digest and there.metadata == metadata
            except ResourceNotFoundError:
                is_current = False
            if not is_current:
                settings = ContentSettings(content_md5=digest)
                blob.upload_blob(content, overwrite=True, metadata=metadata, content_settings=settings)
                uploaded.append(path.name)
    return uploaded


ROOT = Path(__file__).resolve().parents[2]


SEARCH, MODEL, FUNCTIONS_HOST, AZURITE = "search server", "model server", "Functions host", "storage emulator"


DOCUMENTS_CONTAINER = "documents"
_DURABLE = "AzureFunctionsJobHost__extensions__durableTask__storageProvider__"


# Shortens the delays after a crash, which are longer in Azure. Not used if the environment sets the lease.
QUICK_RECOVERY = {
    "LOCAL_HOST_LEASE_S": "0.5",
    f"{_DURABLE}controlQueueVisibilityTimeout": "00:00:01",
    f"{_DURABLE}workItemQueueVisibilityTimeout": "00:00:01",
}


class LocalStack:
    """A stack on the loopback interface. As a context manager, it starts on entry and stops on exit.

    Args:
        settings: addresses and data folder.
        overrides: app settings that replace the defaults, such as a CHAT_MODEL with knobs.
        environment: variables for the servers, and for the choice of a model; defaults to os.environ.
    """

    def __init__(
        self,
        settings: StackSettings,
        overrides: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.data = settings.data
        self.data.mkdir(parents=True, exist_ok=True)
        self._wanted_ports = settings.ports
        self._overrides = dict(overrides or {})
        self._environment = dict(os.environ if environment is None else environment)
        self._children: dict[str, ChildProcess] = {}
        self.ports: Ports = settings.ports
        self.secrets: StackSecrets
        self.model: ModelChoice
        self.app_settings: dict[str, str] = {}

    @property
    def base_url(self) -> str:
        """The URL of the app. The API is below /api."""
        return f"http://{HOST}:{self.ports.http}"

    @property
    def search_url(self) -> str:
        return f"http://{HOST}:{self.ports.search}"

    @property
    def storage_connection_string(self) -> str:
        """The connection string for Azure Storage clients."""
        return connection_string(self.ports.blob, self.ports.queue, self.ports.table)

    @property
    def _host_folder(self) -> Path:
        return self.data / "host"

    @property
    def host_headers(self) -> dict[str, str]:
        """The headers that authenticate requests to the host's own addresses, /admin and /runtime."""
        return {"x-functions-key": host_key(self._host_folder)}

    @property
    def host_pid(self) -> int:
        return self._children[FUNCTIONS_HOST].pid

    def token(self, user: SampleUser) -> str:
        """Return a development token for a sample user, signed for this stack."""
        return mint_token(user, self.secrets.token_secret)

    def start(self) -> None:
        """Start all servers and wait until the host serves requests.

        Raises:
            StackError: if a port or the folder is in use, or a server doesn't start.
        """
        process_record.claim(self.data)
        try:
            self.secrets = load_or_make_secrets(self.data)
            self.ports = settle_ports(self._wanted_ports)
            self.model = choose_model(self._environment, self.ports.model, self.secrets.model_key)
            self._start_servers()
            self.start_host()
        except BaseException:
            self.stop()
            raise

    def _start_servers(self) -> None:
        names = (SEARCH, MODEL) if self.model.is_local else (SEARCH,)
        for name in names:
            self._spawn(name)
        self._start_azurite()
        for name in names:
            self._until_healthy(name)
        connection_string = self.storage_connection_string
        # The container is created first, because the blob trigger lists it as soon as the host starts.
        ensure_container(connection_string, DOCUMENTS_CONTAINER)
        allow_uploads_from(connection_string, self.base_url)
        settings = app_settings(self.ports, self.secrets, connection_string, self.model, self._environment)
        self.app_settings = {**settings, **self._overrides}
        write_settings_file(self.data, self.app_settings)
        write_tokens_file(self.data, self.base_url, self.secrets.token_secret)

    def _start_azurite(self) -> None:
        ports = self.ports
        azurite = start_azurite(self.data / "azurite", ports.blob, ports.queue, ports.table)
        self._children[AZURITE] = azurite.process
        self._record()

    def start_host(self, changes: Mapping[str, str] | None = None) -> None:
        """Start the host and wait until it serves requests. After `kill_host`, `changes` may replace app
        settings.
        """
        self.app_settings.update(changes or {})
        data = ("--data", str(self._host_folder))
        command = [sys.executable, "-m", "local.host", "--port", str(self.ports.http), *data]
        quick = {} if "LOCAL_HOST_LEASE_S" in self._environment else QUICK_RECOVERY
        self._start(FUNCTIONS_HOST, command, {**quick, **self.app_settings})
        child = self._children[FUNCTIONS_HOST]
        wait_until_healthy(child, self.ports.http, "/admin/host/status", self.host_headers)

    def stop_host(self) -> None:
        """Stop the host gracefully, so that the next host doesn't have to wait for leases to expire."""
        self._children.pop(FUNCTIONS_HOST).stop()

    def kill_host(self) -> None:
        """Kill the host to simulate a crash. The other servers continue."""
        self._children.pop(FUNCTIONS_HOST).kill()

    def crash(self, name: str) -> None:
        """Kill a server other than the host to simulate a crash, and restart it.

        The storage emulator is stopped gracefully instead, because it writes its index only seconds after a
        response.
        """
        if name == AZURITE:
            self._children[name].stop()
            self._start_azurite()
        else:
            self._children[name].kill()
            self._spawn(name)
            self._until_healthy(name)

    def pid_of(self, name: str) -> int:
        """Return the process id of a server."""
        return self._children[name].pid

    @property
    def worker_pid(self) -> int:
        """The process id of the host's worker, which changes with each restart."""
        status = urllib.request.Request(f"{self.base_url}/admin/host/status", headers=self.host_headers)  # noqa: S310
        with urllib.request.urlopen(status, timeout=10) as answer:  # noqa: S310  # of this stack
            return int(json.load(answer)["workerProcessId"])

    def kill_worker(self) -> None:
        """Kill the worker process of the host, which then starts a new one."""
        os.kill(self.worker_pid, signal.SIGKILL)

    def _spawn(self, name: str) -> None:
        module, key = {
            SEARCH: ("local.search_server", self.secrets.search_key),
            MODEL: ("local.model_server", self.secrets.model_key),
        }[name]
        data = ("--data", str(self.data / module.rpartition(".")[2])) if name == SEARCH else ()
        command = [sys.executable, "-m", module, "--port", str(self._port_of(name)), *data]
        # The key is not passed on the command line, which every user can read.
        self._start(name, command, {"SERVER_KEY": key})

    def _port_of(self, name: str) -> int:
        return self.ports.search if name == SEARCH else self.ports.model

    def _until_healthy(self, name: str) -> None:
        wait_until_healthy(self._children[name], self._port_of(name), "/health")

    def _start(self, name: str, command: list[str], settings: Mapping[str, str]) -> None:
        log_path = self.data / f"{name.lower().replace(' ', '-')}.log"
        environment = {**self._environment, **settings}
        self._children[name] = start_child(name, command, log_path, environment, folder=ROOT)
        self._record()

    def _record(self) -> None:
        process_record.write(self.data, {name: child.pid for name, child in self._children.items()})

    def check(self) -> None:
        """Raise `StackError` with the end of the log if a server has exited."""
        for child in self._children.values():
            if not child.is_running():
                raise StackError(child.describe_end())

    def watch(self, interval_s: float = 0.5) -> None:
        """Block until a server exits, then raise `StackError`."""
        while True:
            self.check()
            time.sleep(interval_s)

    def stop(self) -> None:
        """Stop all processes, the host first because it uses the others."""
        for name in (FUNCTIONS_HOST, MODEL, SEARCH, AZURITE):
            child = self._children.pop(name, None)
            if child is not None:
                child.stop()
        process_record.release(self.data)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
