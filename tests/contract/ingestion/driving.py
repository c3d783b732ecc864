"""Runs `ingest_document` on the replay harness, with activities that use the test's real services."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from orchestrations import ingest_activities
from orchestrations.ingest_document import ingest_document
from shared import wiring
from shared.documents.ids import document_id
from shared.documents.state import DocumentState
from shared.ingestion.acceptance import accept
from shared.ingestion.large_files import describe, finish, parse, plan, write_blocks
from shared.ingestion.models import IngestReply, IngestResult, IngestStep
from shared.ingestion.steps import perform as perform_step
from shared.ingestion.task import IngestTask
from shared.platform.names import DOCUMENTS, WORK
from shared.platform.search import IndexRow, SearchRequest
from shared.wiring import Services
from tests.replay.harness import Script, simulate
from tests.servers import unique_name

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
    "rest_document",
)


class IdleClient:
    """A durable client that records the ids of its instances but never runs them."""

    def __init__(self) -> None:
        self.started: list[str] = []

    async def get_status(self, instance: str) -> None:
        return None

    async def start_new(self, name: str, instance: str, payload: object) -> str:
        self.started.append(instance)
        return instance


Act = Callable[[IngestTask], Awaitable[IngestReply]]
STEPS: tuple[Act, ...] = (accept, parse, describe, plan, write_blocks, finish)


GUIDE = """# Pump guide

The pump moves water. It is checked every year by a trained person.

## Limits

The highest pressure is 16 bar. Above it the valve opens by itself.

## Care

Oil is changed every 500 hours. Use only oil of the type that the label names.
"""


def unique(suffix: str = ".md") -> str:
    """Return a path that no other test of this run uses, because all workers share one storage account."""
    return f"{unique_name('folder')}/guide{suffix}"


async def ingest(
    services: Services, blob_name: str, instance_id: str = "one", client: Any = None
) -> IngestResult:
    """Run the orchestration to its end, including the executions that it continues as.

    Args:
        instance_id: a different id means a newer execution, which fences off earlier ones.
        client: durable client that starts the next admitted documents.
    """
    orchestration_input: Any = {"blob_name": blob_name}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wiring, "get_services", lambda: services)
        while True:
            run = await asyncio.to_thread(
                simulate,
                ingest_document,
                orchestration_input,
                _script(client or IdleClient()),
                instance_id=instance_id,
            )
            if run.continued_with is not None:
                orchestration_input = run.continued_with
            elif run.output["outcome"] == "rests":
                instance_id += " again"
            else:
                return IngestResult.model_validate(run.output)


async def ingest_all(services: Services, run: Callable[[str], Awaitable[object]]) -> None:
    """Ingest every document in the backlog, whether or not it has been admitted."""
    for work in [*await services.documents.open_work.backlog(is_fresh=True)]:
        await run(work.blob_name)


def _script(client: Any) -> Script:
    loop = asyncio.get_running_loop()

    def answering(name: str) -> Callable[[Any], Any]:
        activity = getattr(ingest_activities, name)._function.get_user_function()
        if hasattr(activity, "client_function"):
            activity = partial(activity.client_function, client=client)
        return lambda payload: asyncio.run_coroutine_threadsafe(activity(payload), loop).result()

    return Script(activities={name: answering(name) for name in ACTIVITIES})


async def perform(act: Act, step: IngestStep, services: Services) -> IngestReply:
    """Perform one step in the same way as its activity."""
    return await perform_step(act, IngestTask(step, services))


def after(step: IngestStep, reply: IngestReply) -> IngestStep:
    """Return the input of the step that follows `step`, given its reply."""
    wish = getattr(reply, "wish", step.wish)
    version_key = getattr(reply, "version_key", step.version_key)
    return step.model_copy(update={"wish": wish, "version_key": version_key})


async def drop(
    services: Services, name: str, content: str | bytes = GUIDE, metadata: dict[str, str] | None = None
) -> None:
    """Write a file or an access list to the container, as a user would."""
    await services.blobs.ensure_containers([DOCUMENTS])
    raw = content.encode() if isinstance(content, str) else content
    await services.blobs.write(DOCUMENTS, name, raw, metadata=metadata)


async def dropped(
    services: Services, name: str, content: str | bytes = GUIDE, metadata: dict[str, str] | None = None
) -> str:
    """Write a file, ingest it, and return the outcome."""
    await drop(services, name, content, metadata)
    return (await ingest(services, name, unique_name("drop"))).outcome


async def removed(services: Services, name: str) -> None:
    """Delete a file and everything derived from it."""
    await services.blobs.delete(DOCUMENTS, name)
    assert (await ingest(services, name, unique_name("removal"))).outcome == "removed"


async def state_of(services: Services, blob_name: str) -> DocumentState:
    state = await services.documents.get(document_id(blob_name))
    assert state is not None
    return state


async def version_files(services: Services, blob_name: str, folder: str = "") -> list[str]:
    """Return the base names of the files of all versions of a document, or of one folder in each version."""
    files = services.blobs.list_blobs(WORK, f"versions/{document_id(blob_name)}/")
    return [file.name.rpartition("/")[2] async for file in files if f"/{folder}" in file.name]


async def step_results(services: Services, blob_name: str) -> list[str]:
    """Return the files with results that the steps of an ingestion have left."""
    return await version_files(services, blob_name, "steps/")


async def blocks_of(services: Services, blob_name: str) -> list[IndexRow]:
    request = SearchRequest(filter=f"doc_id eq '{document_id(blob_name)}'", order_by=("block_id",), top=1000)
    return list((await services.content_index.search(request)).rows)


async def documents_of(services: Services, blob_name: str) -> list[IndexRow]:
    request = SearchRequest(filter=f"doc_id eq '{document_id(blob_name)}'")
    return list((await services.documents_index.search(request)).rows)
