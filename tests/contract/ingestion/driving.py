"""Runs `ingest_document` on the replay harness, its activities against the real services of the test."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from azure.durable_functions.models.DurableOrchestrationStatus import DurableOrchestrationStatus

from orchestrations import ingest_activities
from orchestrations.ingest_document import ingest_document
from shared import wiring
from shared.documents.ids import document_id
from shared.documents.state import DocumentState
from shared.ingestion.models import IngestResult
from shared.platform.search import IndexRow, SearchRequest
from shared.wiring import Services
from tests.replay.harness import Script, simulate

ACTIVITIES = (
    "accept_document",
    "ingest_small_document",
    "parse_document",
    "describe_document",
    "plan_document",
    "caption_figures",
    "write_blocks",
    "finish_document",
    "apply_rights",
    "remove_document",
    "close_document",
)


class Instances:
    """What the durable client says of other instances: those of `ended` have, all others are at work."""

    def __init__(self, *ended: str) -> None:
        self.ended = ended

    async def get_status(self, instance_id: str) -> DurableOrchestrationStatus:
        word = "Terminated" if instance_id in self.ended else "Running"
        return DurableOrchestrationStatus.from_json({"instanceId": instance_id, "runtimeStatus": word})


async def ingest(
    services: Services, blob_name: str, instance_id: str = "one", others: Instances | None = None
) -> IngestResult:
    """Run the orchestration to its end, and again as long as it continues as new."""
    given: Any = {"blob_name": blob_name}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wiring, "get_services", lambda: services)
        while True:
            run = await asyncio.to_thread(
                simulate, ingest_document, given, _script(others or Instances()), instance_id=instance_id
            )
            if run.continued_with is None:
                return IngestResult.model_validate(run.output)
            given = run.continued_with


def _script(others: Instances) -> Script:
    loop = asyncio.get_running_loop()

    def answering(name: str, *bindings: object) -> Callable[[Any], Any]:
        activity = getattr(ingest_activities, name)._function.get_user_function()
        # The SDK's wrapper makes the client from JSON; what it wraps takes any.
        bare = getattr(activity, "client_function", activity)
        return lambda given: asyncio.run_coroutine_threadsafe(bare(given, *bindings), loop).result()

    activities = {name: answering(name) for name in ACTIVITIES}
    return Script(activities={**activities, "check_holder": answering("check_holder", others)})


async def state_of(services: Services, blob_name: str) -> DocumentState:
    state = await services.documents.get(document_id(blob_name))
    assert state is not None
    return state


async def blocks_of(services: Services, blob_name: str) -> list[IndexRow]:
    request = SearchRequest(filter=f"doc_id eq '{document_id(blob_name)}'", order_by=("block_id",), top=1000)
    return list((await services.content_index.search(request)).rows)


async def documents_of(services: Services, blob_name: str) -> list[IndexRow]:
    request = SearchRequest(filter=f"doc_id eq '{document_id(blob_name)}'")
    return list((await services.documents_index.search(request)).rows)
