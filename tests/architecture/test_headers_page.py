"""docs/internals/headers.md names every header that the app reads or sets, and no other."""

import ast
import json
import re

from functions.http.models import ReplyHeaders
from functions.http.openapi.description import Description
from functions.http.openapi.operations import OPERATIONS
from shared.access.limits import Allowance, limit_headers
from tests.architecture.source_tree import ROOT, parse, python_files

PAGE = (ROOT / "docs/internals/headers.md").read_text(encoding="utf-8")
_, REQUESTS, ANSWERS = re.split(r"^## (?:Request|Response) headers$", PAGE, flags=re.MULTILINE)
ROW = re.compile(r"^(?:\||-) `([A-Za-z-]+)`", re.MULTILINE)
HEADER = re.compile(r"[A-Z][A-Za-z]*(?:-[A-Za-z]+)+|Allow|ETag|Link|Location|Vary")
SOURCES = [*python_files("functions"), *(path for path in python_files("shared") if path.stem == "identity")]
# Read by the code, and documented with the rest; the loop below cannot see through their names.
NAMED = {"x-ms-client-principal", "authorization", "x-request-id"}


def read_headers() -> set[str]:
    """Names that are looked up in the headers of a request."""
    found = set(NAMED)
    for path in SOURCES:
        for node in ast.walk(parse(path)):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="get", value=holder), args=[ast.Constant(str() as name), *_]
                ):
                    pass
                case ast.Subscript(value=holder, slice=ast.Constant(str() as name), ctx=ast.Load()):
                    pass
                case _:
                    continue
            if ast.unparse(holder).endswith("headers"):
                found.add(name.lower())
    return found - {"host", "content-disposition"}  # every request has the one, parts of a form the other


def set_headers() -> set[str]:
    """Names that stand in a dict of headers, or in the description."""
    found = {"X-Request-Id", *limit_headers(Allowance(limit=1, remaining=1, reset_s=1))}
    for path in SOURCES:
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.Dict):
                names = [key.value for key in node.keys if isinstance(key, ast.Constant)]
                found |= {name for name in names if isinstance(name, str) and HEADER.fullmatch(name)}
            match node:
                case ast.Subscript(slice=ast.Constant(str() as name), ctx=ast.Store()):
                    found |= {name} if HEADER.fullmatch(name) else set()
    return found - {"Content-Length", "Content-Type"}  # every server sets them


def test_every_header_that_is_read_is_documented() -> None:
    assert {name.lower() for name in ROW.findall(REQUESTS)} == read_headers()


def test_every_header_that_is_set_is_documented() -> None:
    assert set(ROW.findall(ANSWERS)) == set_headers()


def test_every_described_header_is_documented() -> None:
    text = json.dumps(Description(OPERATIONS).document())
    parameters = set(re.findall(r'"name": "([A-Za-z-]+)", "in": "header"', text))
    assert parameters
    assert {name.lower() for name in parameters} <= {name.lower() for name in ROW.findall(REQUESTS)}
    answered = {field.alias or name for name, field in ReplyHeaders.model_fields.items()}
    assert answered <= set(ROW.findall(ANSWERS)) | {"Content-Length"}
