"""The host's own endpoints: status, function list, runs by hand, the Event Grid webhook of blob triggers."""

import uuid

import pytest
from azure.storage.blob import BlobServiceClient

from tests.contract.host.host_process import HostProcess

pytestmark = pytest.mark.contract
WEBHOOK = "/runtime/webhooks/blobs"


def test_status_says_running_and_functions_are_listed(host: HostProcess) -> None:
    with host.client() as client:
        assert client.get("/admin/host/status").json()["state"] == "Running"
        functions = {function["name"]: function for function in client.get("/admin/functions").json()}
    assert functions["echo"]["invoke_url_template"].endswith("/api/echo/{name}")
    assert functions["on_document"]["config"]["bindings"][0]["source"] == "EventGrid"


def test_timer_and_queue_functions_run_by_hand(host: HostProcess) -> None:
    text = uuid.uuid4().hex
    timers = len(host.wait_for_notes("timer"))
    with host.client() as client:
        assert client.post("/admin/functions/on_message", json={"input": text}).status_code == 202
        assert client.post("/admin/functions/every_second", json={}).status_code == 202
    host.wait_for_notes("message", text=text)
    assert len(host.wait_for_notes("timer", timers + 1)) > timers


def test_blob_function_runs_by_hand(host: HostProcess, settings: dict[str, str]) -> None:
    name = _upload(settings)
    host.wait_for_notes("document", name=name)
    with host.client() as client:
        body = {"input": f"{settings['DOCUMENTS']}/{name}"}
        assert client.post("/admin/functions/on_document", json=body).status_code == 202
    assert len(host.wait_for_notes("document", 2, name=name)) == 2


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        ("unknown", '{"input": ""}', 404),
        ("echo", '{"input": ""}', 400),  # an HTTP function is called at its own address
        ("square", '{"input": ""}', 400),
        ("on_document", '{"input": "elsewhere/a.pdf"}', 400),
        ("on_message", "no json", 400),
    ],
)
def test_run_by_hand_that_cannot_be_is_refused(host: HostProcess, name: str, body: str, status: int) -> None:
    with host.client() as client:
        assert client.post(f"/admin/functions/{name}", content=body).status_code == status


def test_webhook_answers_the_subscription_handshake(host: HostProcess) -> None:
    event = {
        "eventType": "Microsoft.EventGrid.SubscriptionValidationEvent",
        "data": {"validationCode": "c-1"},
    }
    with host.client() as client:
        answer = client.post(WEBHOOK, params={"functionName": "Host.Functions.on_document"}, json=[event])
    assert answer.json() == {"validationResponse": "c-1"}


def test_webhook_event_calls_the_function_once_however_often_it_is_delivered(
    host: HostProcess, settings: dict[str, str]
) -> None:
    name = _upload(settings)
    blob = BlobServiceClient.from_connection_string(settings["DocumentsStorage"]).get_blob_client(
        settings["DOCUMENTS"], name
    )
    event = {
        "eventType": "Microsoft.Storage.BlobCreated",
        "subject": f"/blobServices/default/containers/{settings['DOCUMENTS']}/blobs/{name}",
        "data": {"eTag": blob.get_blob_properties().etag.strip('"'), "url": blob.url},
    }
    with host.client() as client:
        for _ in range(3):
            answer = client.post(WEBHOOK, params={"functionName": "Host.Functions.on_document"}, json=[event])
            assert answer.status_code == 202
    marker = _upload(settings)
    host.wait_for_notes("document", name=marker)
    assert len(host.notes("document", name=name)) == 1


@pytest.mark.parametrize(
    ("function", "body", "status"),
    [
        ("Host.Functions.unknown", "[]", 404),
        ("Host.Functions.on_document", "no json", 400),
        ("Host.Functions.on_document", '[{"eventType": "Microsoft.Storage.BlobCreated", "data": {}}]', 400),
    ],
)
def test_webhook_refuses_what_is_no_event(host: HostProcess, function: str, body: str, status: int) -> None:
    with host.client() as client:
        assert client.post(WEBHOOK, params={"functionName": function}, content=body).status_code == status


def _upload(settings: dict[str, str]) -> str:
    service = BlobServiceClient.from_connection_string(settings["DocumentsStorage"])
    container = service.get_container_client(settings["DOCUMENTS"])
    if not container.exists():
        container.create_container()
    name = uuid.uuid4().hex
    container.upload_blob(name, b"x")
    return name
