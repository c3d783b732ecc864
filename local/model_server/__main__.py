"""`python -m local.model_server`: serves on loopback until SIGTERM or SIGINT."""

import argparse
import os

from local.loopback import HOST, bind, serve


def main() -> None:
    """Exit status: 0 after a clean stop, 2 when the port is taken."""
    # Threads are ours, one text group each; a BLAS pool under them would fight for the cores.
    # Read when numpy is loaded, so it is set before anything imports numpy.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    arguments = read_arguments()
    with bind(arguments.port) as listener:
        from local.model_server.app import create_app

        listener.listen(2048)  # early clients wait for the weights
        print(f"model server: http://{HOST}:{arguments.port}/v1", flush=True)
        serve(create_app(arguments.key, arguments.token), listener)


def read_arguments() -> argparse.Namespace:
    """The port, the key and the token of the command line."""
    parser = argparse.ArgumentParser(prog="python -m local.model_server", description=__doc__)
    parser.add_argument("--port", type=int, default=17090)
    parser.add_argument(
        "--key",
        default=os.environ.get("SERVER_KEY"),
        help="API key that every request must carry; also SERVER_KEY; none: any is fine",
    )
    parser.add_argument("--token", default=None, help="bearer token that is as good as the key, as Azure's")
    return parser.parse_args()


if __name__ == "__main__":
    main()
