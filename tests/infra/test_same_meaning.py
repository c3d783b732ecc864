"""host.json and the settings mean the same on this machine and in Azure, but for what names each place."""

import json
from typing import Any

import pytest

from local.host.settings import parse_timespan, read_host_options
from local.run_all.app_settings import app_settings, choose_model
from local.run_all.secret_store import StackSecrets
from local.run_all.stack_settings import Ports
from scripts.bicep_settings import FOR_DEVELOPMENT, names_in_azure
from scripts.infra_check.catalogue import FORBIDDEN_ON_FLEX
from scripts.infra_check.reader import Declaration, properties, read, text_of
from shared.platform.settings import setting_fields
from tests.architecture.source_tree import ROOT

MODULES = ROOT / "infra/bicep/modules"
HOST: dict[str, Any] = json.loads((ROOT / "host.json").read_text(encoding="utf-8"))
LOCAL = app_settings(
    Ports(),
    StackSecrets(search_key="search", token_secret="token", model_key="model"),
    "UseDevelopmentStorage=true",
    choose_model({}, 7073, "model"),
    {},
)
KEYS = {"OPENAI_API_KEY", "AZURE_SEARCH_API_KEY", "DEV_TOKEN_SECRET"}
"""In their place Azure has identities."""
PLACES = {"OPENAI_BASE_URL", "AZURE_SEARCH_ENDPOINT"}
MODELS = {"CHAT_MODEL", "EMBEDDING_MODEL", "EMBEDDING_DIMENSIONS", "EMBEDDING_TOKENIZER_PATH"}
WIDE = {"RATE_LIMIT_PER_MINUTE", "MAX_CONCURRENT_RUNS"}
"""One person tries everything on this machine."""
CONNECTIONS = {"AzureWebJobsStorage", "DocumentsStorage"}
OVERRIDE = "AzureFunctionsJobHost__"


def declared(file: str, kind: str, name: str) -> Declaration:
    return next(found for found in read(MODULES / file).of(kind) if found.name == name)


def values_of(file: str, kind: str, name: str) -> dict[str, str]:
    node = declared(file, kind, name).value
    assert node is not None
    return {key: text_of(value) for key, value in properties(node).items()}


PLATFORM = values_of("function-app.bicep", "var", "platformSettings")
SCHEDULER = values_of("durable-scheduler.bicep", "output", "hostSettings")


def test_every_local_setting_is_one_of_the_app_or_of_the_host() -> None:
    fields = set(setting_fields())
    known = fields | PLATFORM.keys() | set(FORBIDDEN_ON_FLEX) | CONNECTIONS
    assert sorted(LOCAL.keys() - known) == []


def test_a_setting_that_both_have_differs_only_if_it_names_a_place_a_model_or_one_person_s_limit() -> None:
    in_azure = names_in_azure() | PLATFORM
    different = {name for name in LOCAL.keys() & in_azure.keys() if LOCAL[name] != in_azure[name]}
    assert different <= PLACES | MODELS | WIDE
    assert different >= WIDE


def test_what_only_this_machine_has_is_keys_and_the_language() -> None:
    only_here = LOCAL.keys() - names_in_azure().keys() - PLATFORM.keys()
    assert only_here == KEYS | CONNECTIONS | {"FUNCTIONS_WORKER_RUNTIME"}
    assert not only_here & set(FOR_DEVELOPMENT)
    assert LOCAL["FUNCTIONS_WORKER_RUNTIME"] == "python"  # in Azure the plan says so: runtime name python


def test_what_only_azure_s_host_has_is_identity_and_telemetry() -> None:
    only_there = {name for name in PLATFORM if name not in LOCAL}
    kept = {name for name in only_there if name.split("__")[0] not in CONNECTIONS}
    assert kept == {"APPLICATIONINSIGHTS_AUTHENTICATION_STRING"}


@pytest.mark.parametrize("connection", sorted(CONNECTIONS))
def test_a_connection_reaches_the_same_services_in_both_places(connection: str) -> None:
    wired = set(properties(wiring())) | PLATFORM.keys()
    assert connection in LOCAL  # a connection string is blobs, queues and tables at once
    services = {"blobServiceUri", "queueServiceUri", "tableServiceUri", "credential", "clientId"}
    assert {
        name.removeprefix(f"{connection}__") for name in wired if name.startswith(f"{connection}__")
    } == services


def wiring() -> Any:
    main = read(ROOT / "infra/bicep/main.bicep")
    module = next(found for found in main.of("module") if found.name == "appSettings")
    return module.property("params", "wired")


def overrides() -> dict[tuple[str, ...], str]:
    """What the scheduler's settings put in the place of host.json's, by their path there."""
    return {
        tuple(name.removeprefix(OVERRIDE).split("__")): value
        for name, value in SCHEDULER.items()
        if name.startswith(OVERRIDE)
    }


def test_the_scheduler_changes_the_store_of_orchestrations_and_nothing_else_of_the_host() -> None:
    store = ("extensions", "durableTask", "storageProvider")
    changed = {path for path in overrides() if path[:3] != store}
    assert changed == {("extensions", "durableTask", "hubName")}
    assert {path[3:] for path in overrides() if path[:3] == store} == {("type",), ("connectionStringName",)}


def test_the_scheduler_s_hub_is_that_of_host_json_and_its_connection_is_set_beside_it() -> None:
    main = read(ROOT / "infra/bicep/main.bicep")
    module = next(found for found in main.of("module") if found.name == "durableScheduler")
    assert text_of(module.property("params", "taskHubName")) == HOST["extensions"]["durableTask"]["hubName"]
    connection = overrides()[("extensions", "durableTask", "storageProvider", "connectionStringName")]
    assert connection in SCHEDULER
    assert "Authentication=ManagedIdentity" in SCHEDULER[connection]


def test_the_local_host_keeps_to_what_the_deployed_host_json_says() -> None:
    here = read_host_options(ROOT)
    assert "host.json" not in (ROOT / ".funcignore").read_text(encoding="utf-8")
    assert here.route_prefix == HOST["extensions"]["http"]["routePrefix"]
    assert here.task_hub == HOST["extensions"]["durableTask"]["hubName"]
    assert here.max_parallel_activities == HOST["extensions"]["durableTask"]["maxConcurrentActivityFunctions"]
    queues = HOST["extensions"]["queues"]
    assert here.queues.max_dequeue_count == queues["maxDequeueCount"]
    assert here.queues.max_polling_interval_s == parse_timespan(queues["maxPollingInterval"])
    assert here.function_timeout_s == parse_timespan(HOST["functionTimeout"])
