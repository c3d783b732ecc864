"""`python -m local.model_server`: serve on loopback until SIGTERM or SIGINT."""

import argparse
import os

from local.loopback import HOST, bind, serve


def main() -> None:
    """Run the server. Exit status: 0 after a clean stop, 2 if the port is taken."""
    # We run one thread per group of texts; a BLAS thread pool would compete for the cores.
    # numpy reads this when it is imported, so set it first.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    arguments = read_arguments()
    with bind(arguments.port) as listener:
        from local.model_server.app import create_app

        listener.listen(2048)  # early clients wait until the weights are loaded
        print(f"model server: http://{HOST}:{arguments.port}/v1", flush=True)
        serve(create_app(arguments.key, arguments.token), listener)


def read_arguments() -> argparse.Namespace:
    """Parse port, key and token."""
    parser = argparse.ArgumentParser(prog="python -m local.model_server", description=__doc__)
    parser.add_argument("--port", type=int, default=17090)
    parser.add_argument(
        "--key",
        default=os.environ.get("SERVER_KEY"),
        help="API key required in every request; default: SERVER_KEY, or any key if unset",
    )
    parser.add_argument("--token", default=None, help="bearer token accepted instead of the key, as in Azure")
    return parser.parse_args()


if __name__ == "__main__":
    main()
