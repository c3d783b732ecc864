"""Hostile strings in every id, filter, name and body never cause a server error or an additional row."""

import json
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.e2e.access.corpus import AccessCorpus
from tests.e2e.access.people import ABSENT, PEOPLE, leaked
from tests.e2e.access.routes import routes_of_the_app
from tests.e2e.access.strings import FILTER_NAMES, FILTER_VALUES, HOSTILE

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), pytest.mark.attack("filter injection")]

WHO = ("public only", "quoted name")
FILTERS = ("doc_id", "project_id", "filename", "document_type", "department", "page_number", "block_type")
# A key, a text and a number, because each type is rendered differently.
SENT = ("doc_id", "project_id", "page_number")
PARAMETERS = ("document_type", "department", "project_id", "language", "author", "filename", "tags", "limit")
# One string for each kind of place that a text can break out of. `make nightly` sends all strings.
EVERY_CHANGE = {
    "always true in a literal",
    "closing search.in",
    "unit separator",
    "null",
    "newline",
    "parent",
}
EVERY = pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=name, marks=() if name in EVERY_CHANGE else pytest.mark.nightly)
        for name, text in HOSTILE.items()
    ],
)


def send(caller: httpx.Client, method: str, path: str, body: Any) -> httpx.Response:
    """Send JSON with all non-ASCII characters escaped, so that unpaired surrogates can be sent."""
    content = None if body is None else json.dumps(body).encode("ascii")
    return caller.request(method, path, content=content, headers={"Content-Type": "application/json"})


def in_a_path(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


def harmless(name: str, answer: httpx.Response, about: object) -> None:
    """Check that a response has no 5xx status, no foreign data, and no header created by the text."""
    assert answer.status_code < 500, (about, answer.text)
    assert leaked(PEOPLE[name], answer.text) == [], about
    assert "x-injected" not in answer.headers, about


def rows_of(caller: httpx.Client, **body: Any) -> tuple[int, set[str]]:
    answer = send(caller, "POST", "/search", {"query": "turbine", "top_k": 50, **body})
    assert answer.status_code < 500, (body, answer.text)
    results = answer.json().get("results", [])
    return answer.status_code, {hit["block_id"] for hit in results}


@EVERY
def test_in_the_place_of_an_id(world: AccessCorpus, text: str) -> None:
    name = "quoted name"  # the quoted id of this person is used in the same filter
    for route in routes_of_the_app():
        method, _, path = route.partition(" ")
        if "{" not in path or path.endswith("/events"):
            continue
        for keeps_first_id in (False, True):  # True replaces only the ids after a well-formed first id
            hostile = path.replace("{doc_id}", ABSENT) if keeps_first_id else path
            if "{" not in hostile or (keeps_first_id and hostile == path):
                continue
            filled = "/".join(
                in_a_path(text) if part.startswith("{") else part for part in hostile.split("/")
            )
            body = {"title": "x"} if method != "GET" else None
            answer = send(world.caller(name), method, f"/{filled}", body)
            harmless(name, answer, (route, text))
            # After decoding and normalisation, the path may match another route. 403: another user's data.
            refused = {400, 404, 405, 414, *((403,) if path.startswith("users/") else ())}
            assert answer.status_code in refused or method == "GET", (route, answer.text)


@EVERY
def test_as_the_value_of_a_filter(world: AccessCorpus, text: str) -> None:
    for name in WHO:
        caller = world.caller(name)
        _, plain = rows_of(caller)
        for field in SENT:
            for value in (text, [text, "x"]):
                status, rows = rows_of(caller, filters={field: value})
                assert status in (200, 400), (field, value)
                assert rows <= plain, (field, value)
                assert not rows, (field, value)


@EVERY
def test_as_a_query_and_as_query_parameters(world: AccessCorpus, text: str) -> None:
    for name in WHO:
        caller = world.caller(name)
        own = {document["doc_id"] for document in caller.get("/documents").json()["documents"]}
        harmless(name, send(caller, "POST", "/search", {"query": text, "top_k": 50}), text)
        for parameter in PARAMETERS:
            answer = caller.get(f"/documents?{parameter}={in_a_path(text)}")
            harmless(name, answer, (parameter, text))
            if answer.status_code != 414:  # the host rejects overlong paths with an empty body
                listed = {document["doc_id"] for document in answer.json().get("documents", [])}
                assert listed <= own, (parameter, text)
        for path in ("/threads", "/memory"):
            harmless(name, caller.get(f"{path}?cursor={in_a_path(text)}&limit={in_a_path(text)}"), text)
            harmless(name, caller.get(f"{path}?cursor={in_a_path(text)}"), (path, text))


@pytest.mark.parametrize("field", FILTER_NAMES, ids=range(len(FILTER_NAMES)))
def test_as_the_name_of_a_filter(world: AccessCorpus, field: str) -> None:
    for name in WHO:
        for value in ("*", ["*"], {"start": "2024-01-01"}):
            body = {"query": "turbine", "filters": {field: value}}
            answer = send(world.caller(name), "POST", "/search", body)
            harmless(name, answer, field)
            assert answer.status_code == 400, (field, answer.text)


@pytest.mark.nightly
@pytest.mark.parametrize("value", FILTER_VALUES, ids=range(len(FILTER_VALUES)))
def test_as_values_of_strange_kinds(world: AccessCorpus, value: Any) -> None:
    caller = world.caller("public only")
    _, plain = rows_of(caller)
    for field in FILTERS:
        status, rows = rows_of(caller, filters={field: value})
        assert status in (200, 400), (field, value)
        assert rows <= plain, (field, value)


def test_numbers_that_json_does_not_have(world: AccessCorpus) -> None:
    for number in ("1e999", "-1e999", "NaN", "Infinity", "1" * 5000):
        content = f'{{"query": "turbine", "filters": {{"page_number": {number}}}}}'
        answer = world.caller("public only").post("/search", content=content)
        assert answer.status_code in (200, 400), (number, answer.text)
        assert leaked(PEOPLE["public only"], answer.text) == []


@EVERY
def test_in_the_bodies_of_changes(world: AccessCorpus, text: str) -> None:
    """Send only requests that fail, so that no model is called."""
    caller = world.caller("public only")
    foreign = f"/documents/{world.doc_id('owner')}"
    bodies: list[tuple[str, str, Any]] = [
        ("POST", "/chat", {"question": text, "thread_id": text}),
        ("POST", "/chat", {"question": "x", "thread_id": ABSENT, "project_id": text, "doc_ids": [text]}),
        ("POST", "/chat", {"question": "x", "user_id": text, "thread_id": ABSENT}),
        ("POST", "/summaries", {"doc_ids": [text], "language": text}),
        ("POST", f"/runs/{ABSENT}/answer", {"text": text}),
        ("PATCH", f"/threads/{ABSENT}", {"title": text}),
        ("PATCH", foreign, {"title": text, "tags": [text]}),
        ("PUT", f"{foreign}/access", {"acl": [text], "project_id": text}),
        ("POST", "/documents/uploads", {"filename": f"{text}.json", "folder": text, "acl": [text]}),
    ]
    for method, path, body in bodies:
        answer = send(caller, method, path, body)
        harmless("public only", answer, (path, text))
        if not path.endswith("uploads"):
            assert answer.status_code in (400, 404, 413), (path, answer.status_code, answer.text)
    assert world.caller("owner").get(foreign).json()["title"] != text


CHAT = ("always true", "closing search.in", "bar", "Lucene", "null", "parent", "other scripts", "long quotes")


@pytest.mark.nightly
@pytest.mark.parametrize("text", [HOSTILE[key] for key in CHAT], ids=CHAT)
def test_a_question_about_projects_and_documents_that_are_no_names(world: AccessCorpus, text: str) -> None:
    caller = world.caller("public only")
    body = {"question": f"What is the calibration interval of the turbine? {text}", "stream": False}
    for limits in ({}, {"project_id": text[:100]}, {"doc_ids": [text, text + "x"]}):
        answer = send(caller, "POST", "/chat", {**body, **limits})
        harmless("public only", answer, limits)
        run_id = answer.headers.get("x-run-id")
        if run_id and answer.status_code in (200, 202):
            harmless("public only", caller.get(f"/runs/{run_id}/events"), limits)


@EVERY
def test_as_a_file_name_it_stays_in_the_folder_of_its_sender(world: AccessCorpus, text: str) -> None:
    name = text.encode("utf-8", "replace").decode()
    caller = world.caller("public only")
    answer = caller.post(
        "/documents", data={"folder": name}, files={"file": (f"{name}.zip", b"x")}
    )  # unsupported type, rejected after its name and folder were accepted
    harmless("public only", answer, text)
    assert answer.status_code in (400, 413, 422), (text, answer.status_code, answer.text)
