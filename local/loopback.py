"""Loopback sockets and serving, shared by the search server and the model server."""

import signal
import socket
import sys

import uvicorn
from starlette.types import ASGIApp

HOST = "127.0.0.1"
USAGE_ERROR = 2
GRACE_S = 2  # time in seconds for replies in progress when the server stops; stalled replies are cut off


def bind(port: int) -> socket.socket:
    """Return a bound socket that doesn't listen yet, so that clients are refused until the server has loaded.

    Raises:
        SystemExit: with code 2 and a line on stderr, if the port is in use.
    """
    # asyncio disables Nagle's algorithm only if the protocol is given explicitly; otherwise it delays
    # responses by 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # This option allows a restart while old connections are in TIME_WAIT. A port with a listener remains
    # exclusive.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError:
        listener.close()
        print(f"Port {port} is in use; choose another one with --port", file=sys.stderr)
        raise SystemExit(USAGE_ERROR) from None
    return listener


def serve(app: ASGIApp, listener: socket.socket) -> None:
    """Serve the application until SIGTERM or SIGINT arrives."""
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        # Clients keep connections open between questions. Closing a connection earlier would race with its
        # next request.
        timeout_keep_alive=300,
        timeout_graceful_shutdown=GRACE_S,
    )
    # uvicorn raises the signal again after its shutdown, which would otherwise kill the process.
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, lambda *_: None)
    uvicorn.Server(config).run(sockets=[listener])
