"""Tests for the API description: it covers every route and is valid OpenAPI 3.1."""

import json
import tomllib
from typing import Any

import httpx
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import ValidationError

from functions.api import app
from functions.http.application import routes_of
from functions.http.contracts import JSON, PROBLEM
from functions.http.models import ListQuery
from functions.http.openapi.description import VERSION, describe, describe_fields
from functions.http.openapi.examples import example_of, example_values
from functions.search import SearchQuery
from shared.platform.models import Model
from tests.api_routes import api_operations, api_routes
from tests.architecture.source_tree import ROOT
from tests.contract.api.described import Described


@pytest.fixture(name="document", scope="module")
def make_document() -> dict[str, Any]:
    return describe(app())


def test_every_route_is_described_and_no_other() -> None:
    described = {(method, path) for path, calls in describe(app())["paths"].items() for method in calls}
    served = {
        (method.lower(), route.path_format.removeprefix("/api"))
        for route in routes_of(app())
        if route.path_format.startswith("/api/")
        for method in route.methods or ()
    }
    assert described == served
    names = [name for _, _, name in api_routes()]
    assert len(names) == len(set(names)) == len(served)


def test_it_is_a_valid_description(document: dict[str, Any]) -> None:
    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []
    broken = {**document, "paths": {"/x": {"get": {"responses": {"200": {}}}}}}
    assert list(OpenAPIV31SpecValidator(broken).iter_errors()), (
        "a validator that finds nothing proves nothing"
    )


def test_its_version_is_the_projects(document: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert document["info"]["version"] == VERSION == project["version"]


def test_every_call_but_the_open_ones_names_its_identity_and_its_refusal(document: dict[str, Any]) -> None:
    open_calls = set()
    for path, methods in document["paths"].items():
        for call in methods.values():
            is_open = call.get("security") == []
            assert ("401" in call["responses"]) is not is_open, path
            if is_open:
                open_calls.add(path)
    assert open_calls == {"/health", "/health/ready", "/openapi.json", "/docs", "/docs/{asset}", "/site"}


def test_every_refusal_is_a_problem_detail(document: dict[str, Any]) -> None:
    for path, methods in document["paths"].items():
        for call in methods.values():
            for status, response in call["responses"].items():
                if status in ("4XX", "5XX") or status < "400" or (path, status) == ("/health/ready", "503"):
                    continue
                is_openai = path.startswith("/v1/")
                media_type = "application/json" if is_openai else "application/problem+json"
                shape = "CompletionFailure" if is_openai else "Problem"
                schema = response["content"][media_type]["schema"]
                assert schema == {"$ref": f"#/components/schemas/{shape}"}, (path, status)


def test_answers_hold_all_their_fields_and_bodies_only_what_they_must(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert set(schemas["RunView"]["required"]) == set(schemas["RunView"]["properties"])
    assert schemas["ChatRequest"]["required"] == ["question"]
    assert "doc_ids" not in schemas["Memory"]["properties"], "it is never shown"
    assert schemas["ChatRequest"]["additionalProperties"] is False


def test_what_a_call_makes_is_linked_to_what_can_be_done_with_it(document: dict[str, Any]) -> None:
    def links(path: str, status: str) -> dict[str, Any]:
        response_links: dict[str, Any] = document["paths"][path]["post"]["responses"][status].get("links", {})
        return response_links

    by_header = {"operationId": "cancel_run", "parameters": {"run_id": "$response.header.X-Run-Id"}}
    for status in ("200", "202"):
        assert links("/chat", status)["cancel_run"] == by_header
    assert {"get_run", "get_run_events", "answer_run", "put_feedback"} <= set(links("/chat", "200"))
    thread = links("/threads", "201")
    assert {"get_thread", "patch_thread", "delete_thread", "clear_thread"} <= set(thread)
    assert thread["get_thread"]["parameters"] == {"thread_id": "$response.body#/thread_id"}
    assert {"get_summary", "cancel_summary"} <= set(links("/summaries", "202"))
    assert {"get_document", "delete_document"} <= set(links("/documents", "202"))
    assert links("/documents/uploads", "201") == {}, "there is no document before it is uploaded"


@pytest.mark.parametrize("text", ["0", "101", " 1", "1_0", "+1", "1.0", "٣", "x", "1" * 5000])
def test_a_number_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        ListQuery.model_validate({"limit": text})


def test_what_a_docstring_says_of_a_field_stands_at_the_field() -> None:
    class Valve(Model):
        """A valve.

        Attributes:
            opened, closed: when that
                was last so.
        """

        opened: int
        closed: int
        name: str

    schema = describe_fields(Valve.model_json_schema())
    assert schema["description"] == "A valve."
    descriptions = {name: field.get("description") for name, field in schema["properties"].items()}
    assert descriptions == {
        "opened": "when that was last so.",
        "closed": "when that was last so.",
        "name": None,
    }


@pytest.mark.parametrize(
    ("path", "status", "content", "complaint"),
    [
        ("/api/health", 418, b"{}", "the status is not described"),
        ("/api/health", 200, b'{"status": "fine"}', "status"),
        ("/api/threads/x", 404, b'{"detail": "x"}', "required"),
        ("/api/runs/x", 200, b"{}", "required"),
    ],
)
def test_an_answer_that_is_not_as_described_is_found(
    document: dict[str, Any], path: str, status: int, content: bytes, complaint: str
) -> None:
    kind = "application/json" if status < 400 else "application/problem+json"
    answer = httpx.Response(
        status,
        content=content,
        headers={"Content-Type": kind},
        request=httpx.Request("GET", f"http://app{path}"),
    )
    with pytest.raises(AssertionError, match=complaint):
        Described(document).check(answer)


def test_an_event_that_is_not_as_described_is_found(document: dict[str, Any]) -> None:
    def check(text: str) -> None:
        answer = httpx.Response(
            200,
            text=text,
            headers={"Content-Type": "text/event-stream"},
            request=httpx.Request("GET", "http://app/api/runs/x/events"),
        )
        Described(document).check(answer)

    check(": keep-alive\n\nid: 1\nevent: token\ndata: {}\n\n")
    for wrong in ("id: 1\nevent: tokens\ndata: {}\n\n", "id: x\nevent: token\ndata: {}\n\n", "id: 1\n\n"):
        with pytest.raises(AssertionError, match="get_run_events 200"):
            check(wrong)


def test_every_field_and_parameter_is_described(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    fields = {f"{model}.{name}": field for model in schemas for name, field in fields_of(schemas[model])}
    assert [name for name, field in fields.items() if not field.get("description")] == []
    calls = [call for methods in document["paths"].values() for call in methods.values()]
    parameters = [parameter for call in calls for parameter in call["parameters"]]
    assert [parameter["name"] for parameter in parameters if not parameter["description"]] == []


def test_example_values_for_fields_that_do_not_exist_are_removed(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    schema_names = set(schemas) | {name for model in schemas for name, _ in fields_of(schemas[model])}
    schema_names |= {f"{model}.{name}" for model in schemas for name, _ in fields_of(schemas[model])}
    parameters = {f"SearchQuery.{name}" for name in SearchQuery.model_fields}
    parameters |= {f"path.{name}" for operation in api_operations() for name in operation.names}
    assert set(example_values()) - schema_names - parameters == set()


def fields_of(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return list(schema.get("properties", {}).items())


def test_every_body_and_answer_has_an_example_that_fits(document: dict[str, Any]) -> None:
    described, example_count = Described(document), 0
    for call in described.operations():
        places = {"body": call.get("requestBody", {}), **call["responses"]}
        for place, response in places.items():
            for media_type, content in response.get("content", {}).items():
                about = f"{call['operationId']} {place} {media_type}"
                if "schema" not in content or (place[:1] in "45" and media_type != PROBLEM):
                    continue
                for example in examples_in(content, document):
                    example_count += 1
                    described.check_example(content["schema"], media_type, example, about)
    assert example_count > 500


def examples_in(content: dict[str, Any], document: dict[str, Any]) -> list[Any]:
    if "examples" not in content:
        return [content["example"]]
    shared = document["components"]["examples"]
    return [shared[one["$ref"].rpartition("/")[2]]["value"] for one in content["examples"].values()]


def test_the_app_takes_the_examples_of_bodies(document: dict[str, Any]) -> None:
    for operation in api_operations():
        if operation.contract.body is not None:
            call = document["paths"][f"/{operation.route}"][operation.method.lower()]
            example = call["requestBody"]["content"][JSON]["example"]
            operation.contract.body.model_validate_json(json.dumps(example))


def test_a_text_without_a_value_is_named() -> None:
    schemas = {"Valve": {"properties": {"maker": {"type": "string"}, "open": {"type": "boolean"}}}}
    with pytest.raises(LookupError, match=r"Valve\.maker"):
        example_of("Valve", schemas)


def test_it_is_plain_json(document: dict[str, Any]) -> None:
    assert json.loads(json.dumps(document)) == document
