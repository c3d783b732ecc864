"""`python -m local.model_server`: serves on loopback until SIGTERM or SIGINT."""

import argparse
import logging
import os
import signal
import socket
import sys
from types import FrameType

HOST = "127.0.0.1"
GRACE_S = 2  # stalled replies are cut off after that


def main() -> int:
    """Exit status: 0 after a clean stop, 2 when the port is taken."""
    # Threads are ours, one text group each; a BLAS pool under them would fight for the cores.
    # Read when numpy is loaded, so it is set before anything imports numpy.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    import uvicorn

    from local.model_server.app import create_app

    arguments = _parser().parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s %(message)s", stream=sys.stderr)
    listener = _listen(arguments.port)
    if listener is None:
        print(f"Port {arguments.port} is in use; choose another one with --port", file=sys.stderr)
        return 2
    config = uvicorn.Config(
        create_app(arguments.key, arguments.token, arguments.knobs),
        log_level="error",
        access_log=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    signal.signal(signal.SIGTERM, _stop)  # uvicorn raises the signal again after its clean stop
    signal.signal(signal.SIGINT, _stop)
    with listener:
        print(f"model server: http://{HOST}:{arguments.port}/v1", flush=True)
        uvicorn.Server(config).run(sockets=[listener])
    return 0


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m local.model_server", description=__doc__)
    parser.add_argument("--port", type=int, default=17090)
    parser.add_argument(
        "--key",
        default=os.environ.get("SERVER_KEY"),
        help="API key that every request must carry; also SERVER_KEY; none: any is fine",
    )
    parser.add_argument("--token", default=None, help="bearer token that is as good as the key, as Azure's")
    parser.add_argument(
        "--knobs", default="", help="for all requests whose model's name has none, such as without=tools"
    )
    return parser


def _listen(port: int) -> socket.socket | None:
    listener = socket.socket()
    # So that a restart does not wait for old connections; it does not share a port that is listened on.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError:
        listener.close()
        return None
    listener.listen(2048)
    return listener


if __name__ == "__main__":
    sys.exit(main())
