"""`python -m local.search_server`: serve the indexes of a folder on the loopback interface until SIGTERM or
SIGINT.
"""

import argparse
import fcntl
import os
import sys
from collections.abc import Callable
from pathlib import Path

from starlette.routing import Route

from local.loopback import USAGE_ERROR, bind, serve


def main(load_routes: Callable[[], list[Route]] = list) -> int:
    """Run the server until it is stopped. Return 0 after a clean stop, or 2 if the port or folder is in use.

    Args:
        load_routes: returns additional routes; called after the port and folder are reserved.
    """
    arguments = _arguments()
    # This must precede the import of numpy. Its threads would compete with those of the server and reduce the
    # throughput from 272 to 31 searches per second.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    listener = bind(arguments.port)
    arguments.data.mkdir(parents=True, exist_ok=True)
    with listener, (arguments.data / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print(
                f"{arguments.data} is in use by another server; choose a different folder with --data",
                file=sys.stderr,
            )
            return USAGE_ERROR
        from local.search_server.app import create_app

        serve(create_app(arguments.data, arguments.key, load_routes()), listener)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local.search_server", description=__doc__)
    parser.add_argument("--port", type=int, default=17080, help="port on 127.0.0.1 (default: %(default)s)")
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with the index files; created if missing"
    )
    key = os.environ.get("SERVER_KEY")
    parser.add_argument(
        "--key",
        required=key is None,
        default=key,
        help="API key that clients must send as `api-key` (default: SERVER_KEY)",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
