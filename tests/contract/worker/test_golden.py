"""The app's functions are those of the golden file: a change of a trigger or binding is seen in review."""

import re

import pytest

from local.host.http_front import compile_route
from tests.contract.worker.app_bindings import ROOT, AppBindings, read_app_bindings
from tests.contract.worker.golden import read_golden

pytestmark = pytest.mark.contract


@pytest.fixture(scope="module")
def bindings() -> AppBindings:
    return read_app_bindings(ROOT)


def test_bindings_are_those_of_the_golden_file(bindings: AppBindings) -> None:
    assert bindings == read_golden(), "if this is meant: python -m tests.contract.worker.update_golden"


def test_no_route_is_hidden_by_another_in_the_host_s_order(bindings: AppBindings) -> None:
    """The host tries routes in the alphabetical order of their functions' names."""
    routes = [
        (name, compile_route(binding["route"]), {method.upper() for method in binding["methods"]})
        for name, function in sorted(bindings.items())
        for binding in function["bindings"]
        if binding["type"] == "httpTrigger"
    ]
    hidden = [
        (later, earlier)
        for place, (later, route, methods) in enumerate(routes)
        for earlier, before, other_methods in routes[:place]
        if methods & other_methods and before.match(re.sub(r"\{[^}]*\}", "x", route.text)) is not None
    ]
    assert len(routes) > 40
    assert hidden == []


def test_every_blob_trigger_has_the_event_grid_source(bindings: AppBindings) -> None:
    triggers = [
        binding
        for function in bindings.values()
        for binding in function["bindings"]
        if binding["type"] == "blobTrigger"
    ]
    assert triggers, "the app has a blob trigger"
    assert {trigger.get("source") for trigger in triggers} == {"EventGrid"}
