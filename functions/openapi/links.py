"""What can be done with what a call has made, as OpenAPI links. Pure: made from the operations themselves.

A call that makes something is a POST without names in its route, whose answer holds an id. What takes that
id as the only name of its route, can be called with it.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from functions.openapi.operation import JSON, Operation, Reply

_IDS_IN_HEADERS = {"run_id": "X-Run-Id"}  # of a stream the body is no JSON

_PROMISES = frozenset({"make_upload_ticket"})  # what it tells of is made by the upload

Json = dict[str, Any]


def links_of(reply: Reply, maker: Operation, operations: Sequence[Operation]) -> Json:
    """Links of one of the maker's answers, by operationId; empty = there is nothing to go on with."""
    if maker.method != "POST" or maker.names or maker.name in _PROMISES:
        return {}
    return {
        target.name: {"operationId": target.name, "parameters": {name: place}}
        for name, place in _ids_in(reply)
        for target in operations
        if target.names == (name,)
    }


def _ids_in(reply: Reply) -> Iterator[tuple[str, str]]:
    """Names of ids that an answer holds, and where."""
    shapes = dict(reply.contents)
    shape = shapes.get(JSON)
    for name in shape.model_fields if shape else ():
        if not name.endswith("_id"):
            continue
        if (header := _IDS_IN_HEADERS.get(name)) in reply.headers:
            yield name, f"$response.header.{header}"
        elif len(shapes) == 1:
            yield name, f"$response.body#/{name}"
