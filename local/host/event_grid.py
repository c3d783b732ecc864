"""The Event Grid event shapes that blob storage sends: reads BlobCreated, writes BlobDeleted. Pure but for
new ids.

Source: Azure Blob Storage as an Event Grid source, Event Grid schema.
"""

import base64
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

CREATED = "Microsoft.Storage.BlobCreated"
DELETED = "Microsoft.Storage.BlobDeleted"
VALIDATION = "Microsoft.EventGrid.SubscriptionValidationEvent"
SUBJECT_MARK = "/blobServices/default/containers/"
LOCAL_TOPIC = (
    "/subscriptions/local/resourceGroups/local/providers/Microsoft.Storage/storageAccounts/devstoreaccount1"
)


@dataclass(frozen=True)
class BlobCreated:
    """A blob that was written. `etag` is bare, without quotation marks."""

    container: str
    name: str
    etag: str


class EventShapeError(ValueError):
    """A body that is no list of Event Grid events."""


def read_events(body: bytes) -> list[Mapping[str, object]]:
    """The events of a webhook call: an array, or one event.

    Raises:
        EventShapeError: neither.
    """
    try:
        document = json.loads(body)
    except ValueError as error:
        raise EventShapeError("the body is not JSON") from error
    events = document if isinstance(document, list) else [document]
    if not events or not all(
        isinstance(event, dict) and isinstance(event.get("data"), dict) for event in events
    ):
        raise EventShapeError("the body must be an array of events with data")
    return events


def validation_code(events: Sequence[Mapping[str, object]]) -> str | None:
    """The code to send back if this is the subscription handshake, else None."""
    data = events[0]["data"]
    if events[0].get("eventType") != VALIDATION or not isinstance(data, dict):
        return None
    return str(data.get("validationCode", ""))


def created_blobs(events: Sequence[Mapping[str, object]]) -> list[BlobCreated]:
    """The BlobCreated events among `events`; all others are ignored, as the real blob trigger ignores them.

    Raises:
        EventShapeError: a BlobCreated event that names no blob.
    """
    return [_created_blob(event) for event in events if event.get("eventType") == CREATED]


def _created_blob(event: Mapping[str, object]) -> BlobCreated:
    container, found, name = str(event.get("subject", "")).partition("/blobs/")
    data = event["data"]
    if not found or not container.startswith(SUBJECT_MARK) or not isinstance(data, dict):
        raise EventShapeError("subject must be /blobServices/default/containers/CONTAINER/blobs/NAME")
    etag = str(data.get("eTag") or event.get("id") or uuid.uuid4()).strip('"')
    return BlobCreated(container.removeprefix(SUBJECT_MARK), name, etag)


def deleted_message(container_url: str, container: str, name: str) -> str:
    """The message that Event Grid puts on a storage queue when a blob was deleted: one event, base64."""
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    event = {
        "topic": LOCAL_TOPIC,
        "subject": f"{SUBJECT_MARK}{container}/blobs/{name}",
        "eventType": DELETED,
        "id": str(uuid.uuid4()),
        "data": {
            "api": "DeleteBlob",
            "requestId": str(uuid.uuid4()),
            "blobType": "BlockBlob",
            "url": f"{container_url}/{name}",
            "sequencer": f"{int(datetime.now(UTC).timestamp() * 1_000_000):032x}",
        },
        "dataVersion": "",
        "metadataVersion": "1",
        "eventTime": now,
    }
    return base64.b64encode(json.dumps(event).encode()).decode()
