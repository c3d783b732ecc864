"""How the search and the model server take a port on loopback, and serve until SIGTERM or SIGINT."""

import signal
import socket
import sys

import uvicorn
from starlette.types import ASGIApp

HOST = "127.0.0.1"
USAGE_ERROR = 2
GRACE_S = 2  # stalled replies are cut off after that


def bind(port: int) -> socket.socket:
    """A bound socket that does not listen yet, so that clients are refused until everything is loaded.

    Raises:
        SystemExit: 2, after a line on stderr, when the port is taken.
    """
    # asyncio turns Nagle's algorithm off only where the protocol is named; left on, answers wait 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # So that a restart does not wait for old connections; it does not share a port that is listened on.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError:
        listener.close()
        print(f"Port {port} is in use; choose another one with --port", file=sys.stderr)
        raise SystemExit(USAGE_ERROR) from None
    return listener


def serve(app: ASGIApp, listener: socket.socket) -> None:
    """Serve the application until a signal comes."""
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        # Clients keep their connections between questions; closing one early races with the next request.
        timeout_keep_alive=300,
        timeout_graceful_shutdown=GRACE_S,
    )
    # uvicorn raises the signal again after it has stopped; by then it has done its work.
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, lambda *_: None)
    uvicorn.Server(config).run(sockets=[listener])
