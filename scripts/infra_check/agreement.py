"""Where the files must say the same as the code: names of what is stored, events, host.json, the network."""

import json
import re
from collections.abc import Iterator

from scripts.infra_check.project import Project
from scripts.infra_check.reader import text_of
from shared.platform import names

_DEAD_LETTERS = "event-dead-letters"


def agreement_faults(project: Project) -> Iterator[str]:
    """Every disagreement."""
    yield from _names(project)
    yield from _creations(project)
    yield from _subscriptions(project)
    yield from _host(project)
    yield from _network(project)


def _names(project: Project) -> Iterator[str]:
    tables = {value for name, value in vars(names).items() if name.endswith("_TABLE")}
    wanted = {
        "containers": {*names.CONTAINERS, _DEAD_LETTERS},
        "queues": {names.BLOB_DELETED_QUEUE, *names.QUEUES},
        "tables": tables,
    }
    for parameter, expected in wanted.items():
        found = project.listed("contentStorage", parameter)
        for name in sorted(expected ^ found):
            state = "missing" if name in expected else "used by nobody"
            yield f"main.bicep: {parameter} of the documents' storage: {name} is {state}"


def _creations(project: Project) -> Iterator[str]:
    subscription = project.files["event-subscription.bicep"]
    defaults = {param.name: text_of(param.value) for param in subscription.of("param")}
    wanted = {
        "functionName": project.trigger,
        "documentsContainer": names.DOCUMENTS,
        "deadLetterContainer": _DEAD_LETTERS,
    }
    for name, value in wanted.items():
        if defaults.get(name) != value:
            yield f"event-subscription.bicep: {name} is {defaults.get(name)!r}, in the code {value!r}"
    if "/runtime/webhooks/blobs?functionName=Host.Functions.${functionName}&code=" not in subscription.text:
        yield "event-subscription.bicep: the address of the webhook is not that of the blob trigger"


def _subscriptions(project: Project) -> Iterator[str]:
    for name, event in (
        ("event-subscription.bicep", "BlobCreated"),
        ("deletion-subscription.bicep", "BlobDeleted"),
    ):
        text = project.files[name].text
        if f"'Microsoft.Storage.{event}'" not in text:
            yield f"{name}: does not ask for {event}"
        if "/blobServices/default/containers/${documentsContainer}/blobs/" not in text:
            yield f"{name}: does not keep to the container of the documents"
        if "deadLetterWithResourceIdentity" not in text:
            yield f"{name}: what cannot be delivered is lost"
    for parameter, value in (
        ("deletedQueue", names.BLOB_DELETED_QUEUE),
        ("documentsContainer", names.DOCUMENTS),
        ("deadLetterContainer", _DEAD_LETTERS),
    ):
        if (said := project.parameter("deletionSubscription", parameter)) != value:
            yield f"main.bicep: {parameter} of deletions is {said!r}, in the code {value!r}"


def _host(project: Project) -> Iterator[str]:
    host = json.loads((project.root / "host.json").read_text(encoding="utf-8"))
    hub = host["extensions"]["durableTask"]["hubName"]
    if (said := project.parameter("durableScheduler", "taskHubName")) != hub:
        yield f"main.bicep: the task hub is {said!r}, in host.json {hub!r}"
    if "maxPollingInterval" not in host["extensions"].get("queues", {}):
        yield "host.json: queues that were quiet are looked at once a minute, locally each second"
    if host.get("telemetryMode") != "OpenTelemetry":
        yield "host.json: telemetryMode is not OpenTelemetry"
    text = project.files["durable-scheduler.bicep"].text
    prefix = "AzureFunctionsJobHost__extensions__durableTask__"
    for name in ("hubName", "storageProvider__type", "storageProvider__connectionStringName"):
        if f"{prefix}{name}:" not in text:
            yield f"durable-scheduler.bicep: does not put {name} in the place of host.json's"
    if not re.search(r"ipAllowlist array = \[\s+'", text):
        yield "durable-scheduler.bicep: ipAllowlist is empty, which the service refuses"


def _network(project: Project) -> Iterator[str]:
    text = project.files["network.bicep"].text
    if "serviceName: 'Microsoft.App/environments'" not in text:
        yield "network.bicep: the subnet of the app is not delegated to Flex Consumption"
    endpoints = project.module("privateEndpoints")
    said = text_of(endpoints.body) if endpoints is not None else ""
    for group in ("blob", "queue", "table"):
        if said.count(f"groupId: '{group}'") != 2:
            yield f"main.bicep: {group} of both storage accounts needs a private endpoint"
