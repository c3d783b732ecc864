"""`python -m local.host --port 17071 --data FOLDER [--app function_app]`: serve one function app."""

import argparse
import asyncio
import errno
import os
import socket
import sys
from pathlib import Path

from local.host.settings import (
    HostError,
    PortBusyError,
    fill_environment,
    locate,
    read_host_options,
    set_up_logging,
)
from local.host.worker_process import ADDRESS, Worker, WorkerFailedError

PORT_SETTING = "LOCAL_HOST_PORT"
DEFAULT_PORT = 17071
EXIT_CANNOT_START = 2


def main() -> None:
    set_up_logging()
    try:
        ended_well = _run(_arguments())
    except WorkerFailedError:
        sys.exit(EXIT_CANNOT_START)
    except HostError as error:
        print(f"local.host: {error}", file=sys.stderr, flush=True)
        sys.exit(EXIT_CANNOT_START)
    sys.exit(0 if ended_well else 1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local.host", description=__doc__)
    parser.add_argument("--port", type=int, default=int(os.environ.get(PORT_SETTING, DEFAULT_PORT)))
    parser.add_argument("--data", type=Path, required=True, help="folder for data that survives restarts")
    parser.add_argument(
        "--app",
        default="function_app",
        help="name of a module in the current folder, or path of a .py file (default: %(default)s)",
    )
    return parser.parse_args()


def _run(arguments: argparse.Namespace) -> bool:
    listener = _bind(arguments.port)
    folder, _ = locate(arguments.app)
    fill_environment(folder, os.environ)
    # The command `func start` sets these variables too.
    os.environ.setdefault("AZURE_FUNCTIONS_ENVIRONMENT", "Development")
    os.environ.setdefault("WEBSITE_HOSTNAME", f"localhost:{arguments.port}")
    options = read_host_options(folder)
    base_url = f"http://{ADDRESS}:{arguments.port}"
    worker = Worker(("--app", arguments.app, "--base-url", base_url), os.environ)
    # These modules are imported late, so that the worker process imports the app at the same time.
    from local.host.functions_host import FunctionsHost
    from local.host.serving import serve

    async def serve_app() -> bool:
        try:
            functions = await worker.start(options.function_timeout_s)
            host = FunctionsHost(functions, options, arguments.data, worker)
            words = f"host ready on {base_url} ({len(functions)} functions)"
            return await serve(host, listener, lambda: print(words, flush=True))
        finally:
            await worker.stop()

    return asyncio.run(serve_app())


def _bind(port: int) -> socket.socket:
    """Return a socket that listens on the port. Call this first, so that a busy port is reported before
    anything else starts.

    Raises:
        PortBusyError: another process uses the port.
    """
    # asyncio disables Nagle's algorithm only if the protocol is given explicitly; otherwise it delays
    # responses by 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((ADDRESS, port))
        # The socket listens early, so that functions that call the durable API during the start wait instead
        # of failing.
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno != errno.EADDRINUSE:
            raise
        raise PortBusyError(
            f"port {port} is in use on {ADDRESS}; choose another with --port or the setting {PORT_SETTING}"
        ) from error
    return listener


if __name__ == "__main__":
    main()
