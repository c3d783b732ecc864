"""Runs `ingest_document` on the replay harness, its activities against the real services of the test."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from orchestrations.ingest_document import ingest_document
from shared.core.document_ids import document_id
from shared.ingestion.steps import StepName, perform, perform_close
from shared.models.ingestion import (
    CloseRequest,
    DocumentState,
    IngestReply,
    IngestReplyEnvelope,
    IngestResult,
    IngestStep,
)
from shared.models.search import IndexRow, SearchRequest
from shared.services import Services
from tests.replay.harness import Script, simulate

ACTIVITIES: dict[str, StepName] = {
    "accept_document": "accept",
    "parse_document": "parse",
    "describe_document": "describe",
    "plan_document": "plan",
    "write_blocks": "write_blocks",
    "finish_document": "finish",
    "apply_rights": "apply_rights",
    "remove_document": "remove",
}


async def ingest(services: Services, blob_name: str, instance_id: str = "one") -> IngestResult:
    """Run the orchestration to its end, and again as long as it continues as new."""
    given: Any = {"blob_name": blob_name}
    while True:
        run = await asyncio.to_thread(
            simulate, ingest_document, given, _script(services, instance_id), instance_id=instance_id
        )
        if run.continued_with is None:
            return IngestResult.model_validate(run.output)
        given = run.continued_with


def _script(services: Services, instance_id: str) -> Script:
    loop = asyncio.get_running_loop()

    def answer(coroutine: Coroutine[Any, Any, IngestReply]) -> Any:
        reply = asyncio.run_coroutine_threadsafe(coroutine, loop).result()
        return IngestReplyEnvelope(reply=reply).model_dump(mode="json")

    def step(name: StepName) -> Any:
        return lambda given: answer(perform(name, IngestStep.model_validate(given), services))

    activities = {activity: step(name) for activity, name in ACTIVITIES.items()}
    close = {
        "close_document": lambda given: answer(perform_close(CloseRequest.model_validate(given), services))
    }
    return Script(activities={**activities, **close})


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
