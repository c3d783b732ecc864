"""`python -m tests.endpoint_kinds`: run the local model server with the knobs of this package."""

import os

from local.loopback import bind, serve
from local.model_server.__main__ import read_arguments

if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # must be set before numpy is imported
    arguments = read_arguments()
    with bind(arguments.port) as listener:
        from local.model_server.app import create_app
        from tests.endpoint_kinds.server import EndpointServer

        listener.listen(2048)
        serve(create_app(arguments.key, arguments.token, EndpointServer), listener)
