"""Settings of the local stack itself: ports and the data folder."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path


class StackError(RuntimeError):
    """Error raised if the stack can't start or continue. The message states the cause and a remedy."""


class CallRefusedError(StackError):
    """Error raised if the app responds with a status other than 200."""

    def __init__(self, call: str, status: int, detail: str) -> None:
        super().__init__(f"{call} returned status {status}: {detail}")
        self.status = status


# Not configurable, because nothing in the local stack may be reachable from other machines.
HOST = "127.0.0.1"
DATA_SETTING = "GROUNDWORK_DATA"
DEFAULT_DATA = Path(".local/data")
PORT_SETTINGS = {
    "http": "GROUNDWORK_HTTP_PORT",
    "search": "GROUNDWORK_SEARCH_PORT",
    "model": "GROUNDWORK_MODEL_PORT",
    "blob": "GROUNDWORK_BLOB_PORT",
    "queue": "GROUNDWORK_QUEUE_PORT",
    "table": "GROUNDWORK_TABLE_PORT",
}


@dataclass(frozen=True)
class Ports:
    """The loopback port of each server. 0 chooses a free port at start."""

    http: int = 7071
    search: int = 7072
    model: int = 7073
    blob: int = 10000
    queue: int = 10001
    table: int = 10002


FREE_PORTS = Ports(0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class StackSettings:
    """The ports and data folder of a stack, which no other stack may share."""

    ports: Ports
    data: Path


def read_stack_settings(environment: Mapping[str, str]) -> StackSettings:
    """Return the ports and data folder that the environment variables configure.

    If the app's port isn't the default, the other servers use free ports unless theirs are set.

    Raises:
        StackError: if a port isn't a number from 0 to 65535, or two servers have the same port.
    """
    is_moved = environment.get(PORT_SETTINGS["http"], "").strip() not in ("", str(Ports.http))
    defaults = FREE_PORTS if is_moved else Ports()
    chosen = {
        name: _port(setting, environment.get(setting, "").strip() or str(getattr(defaults, name)))
        for name, setting in PORT_SETTINGS.items()
    }
    _refuse_twins(chosen)
    return StackSettings(Ports(**chosen), Path(environment.get(DATA_SETTING) or DEFAULT_DATA).resolve())


def settle_ports(ports: Ports) -> Ports:
    """Replace each port 0 with a free port, and raise an error if another port is in use.

    All sockets stay open until the last port is known, so that no port is chosen twice.

    Raises:
        StackError: if a port is in use. The message names the setting to change.
    """
    sockets: dict[str, socket.socket] = {}
    try:
        for field in fields(ports):
            sockets[field.name] = _reserve(field.name, getattr(ports, field.name))
        return Ports(**{name: probe.getsockname()[1] for name, probe in sockets.items()})
    finally:
        for probe in sockets.values():
            probe.close()


def _port(setting: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise StackError(f"{setting} must be a port from 1 to 65535, or 0 for a free one, not {text!r}.")
    return int(text)


def _refuse_twins(chosen: Mapping[str, int]) -> None:
    owners: dict[int, str] = {}
    for name, port in chosen.items():
        if port and port in owners:
            both = f"{PORT_SETTINGS[owners[port]]} and {PORT_SETTINGS[name]}"
            raise StackError(f"{both} are both {port}; change one of them.")
        owners[port] = name


def _reserve(name: str, port: int) -> socket.socket:
    probe = socket.socket()
    # The servers set this option too, so a connection in TIME_WAIT doesn't make the port busy.
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        probe.bind((HOST, port))
    except OSError as busy:
        probe.close()
        raise StackError(
            f"Port {port} is in use. Stop the program that uses it, set {PORT_SETTINGS[name]} to another"
            f" port, or start with {PORT_SETTINGS['http']}=0, which chooses free ports for all servers."
        ) from busy
    return probe
