"""Event Grid shapes: what is read from a webhook call, what a deletion message looks like."""

import base64
import json

import pytest

from local.host.event_grid import (
    CREATED,
    BlobCreated,
    EventShapeError,
    created_blobs,
    deleted_message,
    read_events,
    validation_code,
)

SUBJECT = "/blobServices/default/containers/documents/blobs/folder/a.pdf"


def body(*events: object) -> bytes:
    return json.dumps(list(events)).encode()


def test_created_events_are_read_and_others_ignored() -> None:
    created = {"eventType": CREATED, "subject": SUBJECT, "data": {"eTag": '"0x1"'}}
    deleted = {"eventType": "Microsoft.Storage.BlobDeleted", "subject": SUBJECT, "data": {}}
    events = read_events(body(created, deleted))
    assert created_blobs(events) == [BlobCreated("documents", "folder/a.pdf", "0x1")]
    assert validation_code(events) is None


@pytest.mark.parametrize("given", [b"", b"{", b"[]", b"[1]", b'[{"eventType": "x"}]', b'"text"'])
def test_what_is_no_event_is_refused(given: bytes) -> None:
    with pytest.raises(EventShapeError):
        read_events(given)


@pytest.mark.parametrize("subject", ["", "/blobServices/default/containers/documents", "documents/blobs/a"])
def test_created_event_without_a_blob_is_refused(subject: str) -> None:
    with pytest.raises(EventShapeError, match="subject"):
        created_blobs(read_events(body({"eventType": CREATED, "subject": subject, "data": {}})))


def test_deletion_message_is_one_event_in_base64() -> None:
    message = deleted_message("http://127.0.0.1:1/devstoreaccount1/documents", "documents", "folder/ü.pdf")
    event = json.loads(base64.b64decode(message))
    assert event["eventType"] == "Microsoft.Storage.BlobDeleted"
    assert event["subject"] == "/blobServices/default/containers/documents/blobs/folder/ü.pdf"
    assert event["data"]["url"].endswith("/documents/folder/ü.pdf")
    assert event["eventTime"].endswith("Z")
