"""The routes of the API, read from the app that serves them."""

from functions.api import app
from functions.http.contracts import Operation
from functions.http.openapi.description import operations_of


def api_operations() -> list[Operation]:
    return operations_of(app())


def api_routes() -> set[tuple[str, str, str]]:
    """Return the method, route below `/api` and name of every operation of the API. The web page is
    excluded.
    """
    return {(one.method, one.route, one.name) for one in api_operations()}
