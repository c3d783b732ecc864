"""`python -m local.search_server`: take the port and the folder, load, serve until SIGTERM. Loopback only."""

import argparse
import fcntl
import os
import signal
import socket
import sys
from pathlib import Path
from typing import IO

HOST = "127.0.0.1"
USAGE_ERROR = 2


def main() -> int:
    arguments = _arguments()
    # Before numpy is loaded. Its threads fight with ours: 272 searches a second fell to 31 with the default.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    listener = _listen(arguments.port)
    if listener is None:
        print(f"search server: port {arguments.port} is in use; choose another with --port", file=sys.stderr)
        return USAGE_ERROR
    arguments.data.mkdir(parents=True, exist_ok=True)
    with listener, (arguments.data / ".lock").open("w") as lock:
        if not _locked(lock):
            print(
                f"search server: {arguments.data} is used by another server; choose another with --data",
                file=sys.stderr,
            )
            return USAGE_ERROR
        _serve(listener, arguments.data, arguments.key)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local.search_server", description=__doc__)
    parser.add_argument("--port", type=int, default=17080, help="port on 127.0.0.1 (default: %(default)s)")
    parser.add_argument("--data", type=Path, required=True, help="folder for the indexes")
    key = os.environ.get("SERVER_KEY")
    parser.add_argument(
        "--key", required=key is None, default=key, help="the api-key that clients must send; also SERVER_KEY"
    )
    return parser.parse_args()


def _listen(port: int) -> socket.socket | None:
    """A bound socket that does not listen yet, so that clients are refused until everything is loaded."""
    # asyncio turns Nagle's algorithm off only where the protocol is named; left on, answers wait 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError:
        listener.close()
        return None
    return listener


def _locked(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _serve(listener: socket.socket, data: Path, key: str) -> None:
    import uvicorn

    from local.search_server.app import create_app

    config = uvicorn.Config(
        create_app(data, key),
        log_level="warning",
        access_log=False,
        # Clients keep their connections between questions; closing one early races with the next request.
        timeout_keep_alive=300,
        timeout_graceful_shutdown=5,
    )
    # uvicorn raises the signal again after it has stopped; by then it has done its work.
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, lambda *_: None)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    sys.exit(main())
