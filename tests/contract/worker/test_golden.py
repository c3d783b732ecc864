"""The app's functions are those of the golden file: a change of a trigger or binding is seen in review."""

import pytest

from tests.contract.worker.app_bindings import ROOT, AppBindings, read_app_bindings
from tests.contract.worker.golden import read_golden

pytestmark = pytest.mark.contract


@pytest.fixture(scope="module")
def bindings() -> AppBindings:
    return read_app_bindings(ROOT)


def test_bindings_are_those_of_the_golden_file(bindings: AppBindings) -> None:
    assert bindings == read_golden(), "if this is meant: python -m tests.contract.worker.update_golden"


def test_every_blob_trigger_has_the_event_grid_source(bindings: AppBindings) -> None:
    triggers = [
        binding
        for function in bindings.values()
        for binding in function["bindings"]
        if binding["type"] == "blobTrigger"
    ]
    assert triggers, "the app has a blob trigger"
    assert {trigger.get("source") for trigger in triggers} == {"EventGrid"}
