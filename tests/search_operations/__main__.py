"""`python -m tests.search_operations`: run the local search server with the operations of this package."""

import sys

from starlette.routing import Route

from local.search_server.__main__ import main


def load_routes() -> list[Route]:
    from tests.search_operations.routes import further_routes

    return further_routes()


if __name__ == "__main__":
    sys.exit(main(load_routes))
