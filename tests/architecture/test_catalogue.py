"""The catalogues from which tables in docs/ are generated list everything in the code, and nothing else."""

import ast
import json
import re
from collections.abc import Iterator
from typing import get_args

from functions.api import app
from functions.http.models import ReplyHeaders
from functions.http.openapi.description import describe
from scripts.catalogue.headers import REQUEST_HEADERS, RESPONSE_HEADERS
from scripts.catalogue.log_events import LOG_EVENTS
from scripts.catalogue.run_events import EVENTS, STATES
from scripts.catalogue.stores import STORES, Kind
from shared.access.limits import Allowance, limit_headers
from shared.platform import names
from shared.platform.settings import setting_fields
from shared.runs import events
from shared.runs.log_lines import EventName
from tests.architecture.source_tree import ROOT, parse, python_files

HEADER = re.compile(r"[A-Z][A-Za-z]*(?:-[A-Za-z]+)+|Allow|ETag|Link|Location|Vary")
SOURCES = [*python_files("functions"), *(path for path in python_files("shared") if path.stem == "identity")]
# The code reads these headers through constants, which the search below doesn't recognise.
NOT_LITERAL = {"x-ms-client-principal", "authorization", "x-request-id"}


def read_headers() -> set[str]:
    """Return the names of request headers that the code reads."""
    headers = set(NOT_LITERAL)
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
                headers.add(name.lower())
    return headers - {"host", "content-disposition"}  # contained in every request, and in the parts of forms


def set_headers() -> set[str]:
    """Return the names in dictionaries of headers."""
    headers = {"X-Request-Id", *limit_headers(Allowance(limit=1, remaining=1, reset_s=1))}
    for path in SOURCES:
        for node in ast.walk(parse(path)):
            match node:
                case ast.Dict(keys=keys):
                    constants = [key.value for key in keys if isinstance(key, ast.Constant)]
                    headers |= {
                        name for name in constants if isinstance(name, str) and HEADER.fullmatch(name)
                    }
                case ast.Subscript(slice=ast.Constant(str() as name), ctx=ast.Store()) if HEADER.fullmatch(
                    name
                ):
                    headers.add(name)
    return headers - {"Content-Length", "Content-Type"}  # set by every server


def test_headers_of_requests_are_those_that_are_read() -> None:
    assert {name.lower() for name in REQUEST_HEADERS} == read_headers()


def test_headers_of_responses_are_those_that_are_set() -> None:
    assert RESPONSE_HEADERS.keys() == set_headers()


def test_headers_of_the_description_are_in_the_catalogue() -> None:
    text = json.dumps(describe(app()))
    parameters = {name.lower() for name in re.findall(r'"name": "([A-Za-z-]+)", "in": "header"', text)}
    assert parameters
    assert parameters <= {name.lower() for name in REQUEST_HEADERS}
    answered = {field.alias or name for name, field in ReplyHeaders.model_fields.items()}
    assert answered <= RESPONSE_HEADERS.keys() | {"Content-Length"}


LOG_EVENT = re.compile(r"[a-z_]+\.[a-z_]+")
LEVELS = {"info": "info", "warning": "warning", "error": "error", "exception": "error"}


def log_calls() -> Iterator[tuple[str, str, list[str]]]:
    """Yield name, level and fields of every logged line."""
    for path in python_files("shared", "functions", "orchestrations"):
        for node in ast.walk(parse(path)):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr=method), args=[ast.Constant(str() as name), *_], keywords=keywords
                ) if method in LEVELS and LOG_EVENT.fullmatch(name):
                    yield name, LEVELS[method], [keyword.arg for keyword in keywords if keyword.arg]


def test_events_of_the_log_are_those_that_are_logged_at_their_level() -> None:
    logged = {(name, level) for name, level, _ in log_calls()}
    assert len(logged) > 50
    assert {(name, event.level) for name, event in LOG_EVENTS.items()} == logged


def test_every_field_of_the_log_is_documented() -> None:
    fields = {field for _, _, field_names in log_calls() for field in field_names}
    assert {"error_type", "run_id"} <= fields
    page = (ROOT / "docs/logs-and-traces.md").read_text(encoding="utf-8")
    assert [name for name in fields | {"trace_id", "span_id"} if f"`{name}`" not in page] == []


def test_events_of_a_run_are_those_that_there_are() -> None:
    assert [model.name for model in EVENTS] == list(dict.fromkeys(model.name for model in EVENTS))
    assert {model.name for model in EVENTS} == set(get_args(EventName))
    assert set(STATES) == set(events._STATUSES.values())


def test_notes_are_on_fields_that_events_have() -> None:
    for model, description in {**EVENTS, **STATES}.items():
        assert description.notes.keys() <= model.model_fields.keys(), model


def stores(kind: Kind) -> set[str]:
    return {store.name for store in STORES[kind]}


def test_stores_are_those_that_there_are() -> None:
    tables = {value for name, value in vars(names).items() if name.endswith("_TABLE")}
    fields = setting_fields()
    indexes = {fields[name].default for name in fields if re.fullmatch(r"AZURE_SEARCH_\w+_INDEX", name)}
    assert (len(tables) >= 9, len(indexes)) == (True, 3)
    assert stores("Tables") == tables
    assert stores("Containers") == set(names.CONTAINERS)
    assert stores("Queues") == {*names.QUEUES, *names.POISON_QUEUES, names.BLOB_DELETED_QUEUE}
    assert stores("Indexes") == indexes


def test_names_of_stores_are_of_these_kinds() -> None:
    """Check that all names of stores belong to the known kinds. Another kind would need a table in the page
    and a comparison above.
    """
    plain = {name for name, value in vars(names).items() if isinstance(value, str) and name.isupper()}
    others = {name for name in plain if not name.endswith(("_TABLE", "_QUEUE"))}
    assert others == {"DOCUMENTS", "RUN_LOG", "WORK"}


def test_stores_say_what_becomes_of_a_persons_data() -> None:
    assert all(store.content and store.how for kind in STORES.values() for store in kind)
