"""The app's functions: one per resource, with the bindings that its routes need."""

import pytest

from functions.api import app
from functions.http.application import routes_of
from functions.http.requests import durable_client
from tests.api_routes import api_routes
from tests.contract.worker.app_bindings import ROOT, AppBindings, read_app_bindings

pytestmark = pytest.mark.contract


@pytest.fixture(scope="module")
def bindings() -> AppBindings:
    return read_app_bindings(ROOT)


def test_every_resource_has_a_function_and_the_last_one_takes_what_is_left(bindings: AppBindings) -> None:
    """Check the order of the names, because the host matches functions in alphabetical order."""
    templates = {
        name: binding["route"]
        for name, function in bindings.items()
        for binding in function["bindings"]
        if binding["type"] == "httpTrigger"
    }
    assert max(templates) == "www"
    assert templates.pop("www") == "{*path}"
    resources = {route.partition("/")[0] for _, route, _ in api_routes()}
    assert templates == {name: f"api/{name}/{{*rest}}" for name in resources - {"docs", "openapi.json"}}


def test_http_functions_take_every_method_and_no_key(bindings: AppBindings) -> None:
    triggers = [
        binding
        for function in bindings.values()
        for binding in function["bindings"]
        if binding["type"] == "httpTrigger"
    ]
    assert {(one["authLevel"], tuple(one.get("methods") or ())) for one in triggers} == {("ANONYMOUS", ())}


def test_routes_that_start_work_are_served_by_functions_with_a_durable_client(bindings: AppBindings) -> None:
    with_client = {
        name
        for name, function in bindings.items()
        if any(binding["type"] == "durableClient" for binding in function["bindings"])
    }
    needing = {
        route.path_format.split("/")[2]
        for route in routes_of(app())
        if any(one.call is durable_client for one in route.dependant.dependencies)
    }
    assert needing
    assert needing <= with_client


def test_every_blob_trigger_has_the_event_grid_source(bindings: AppBindings) -> None:
    triggers = [
        binding
        for function in bindings.values()
        for binding in function["bindings"]
        if binding["type"] == "blobTrigger"
    ]
    assert triggers, "the app has a blob trigger"
    assert {trigger.get("source") for trigger in triggers} == {"EventGrid"}
