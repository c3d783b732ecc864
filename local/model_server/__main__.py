"""`python -m local.model_server`: serve the model API on the loopback interface until SIGTERM or SIGINT."""

import argparse
import os

from local.loopback import HOST, bind, serve


def main() -> None:
    """Run the server. The process exits with 0 after a clean stop and with 2 if the port is in use."""
    # numpy reads this variable when it is imported. The embedding threads already use both cores, so threads
    # of BLAS would compete with them.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    arguments = read_arguments()
    with bind(arguments.port) as listener:
        from local.model_server.app import create_app

        # The socket listens early, so that clients wait in the backlog while the weights load.
        listener.listen(2048)
        print(f"model server: http://{HOST}:{arguments.port}/v1", flush=True)
        serve(create_app(arguments.key, arguments.token), listener)


def read_arguments() -> argparse.Namespace:
    """Parse the command line: port, API key and bearer token."""
    parser = argparse.ArgumentParser(prog="python -m local.model_server", description=__doc__)
    parser.add_argument("--port", type=int, default=17090)
    parser.add_argument(
        "--key",
        default=os.environ.get("SERVER_KEY"),
        help=(
            "API key that every request must carry (default: SERVER_KEY; if that is unset, no key is checked)"
        ),
    )
    parser.add_argument(
        "--token", default=None, help="bearer token accepted as an alternative to the key, as in Azure"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
