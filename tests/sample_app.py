"""The app with the samples in this process: HTTP API on loopback, orchestrations on the local executor.

It uses the stores and indexes of `tests.world`, and the models of the local model server. Blob and queue
triggers don't fire: a file uploaded through the API is ingested, and a file written to storage isn't.
"""

import asyncio
import importlib
import sys
import threading
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import azure.durable_functions as df
import pytest
import uvicorn

from functions import api
from local.run_all.app_settings import local_directory
from local.run_all.tokens import mint_token
from orchestrations import ingest_activities, registration
from samples.acl import ACCESS, SampleUser
from samples.generate import generate
from shared import wiring
from shared.ingestion.parser_process import parsers
from shared.platform import settings
from shared.platform.hashing import digest
from shared.platform.names import DOCUMENTS, WORK
from shared.retrieval.schema import content_index, documents_index, memory_index
from shared.wiring import Services, build_services
from tests.contract.durable.sdk_functions import SdkFunctions
from tests.contract.durable.server import DurableServer, QuickServer
from tests.fakes.local_engine import LocalSearchIndex
from tests.fakes.services import fake_services, fake_settings
from tests.free_ports import find_free_port
from tests.servers import ModelServer
from tests.unit.functions.http_app import SECRET, make_app

START_GUARD_S = 240.0


class SampleApp:
    """An app that is served on a separate event loop, so that tests may call it with any client.

    Attributes:
        base_url: the URL of the app, without /api.
        data: a folder for files of clients.
    """

    def __init__(self, folder: Path, services: Services) -> None:
        self.base_url = f"http://127.0.0.1:{find_free_port()}"
        self.data = folder
        self._services = services
        self._loop = asyncio.new_event_loop()
        self._is_ready = threading.Event()
        self._stopping = asyncio.Event()
        self._error: BaseException | None = None

    def token(self, user: SampleUser, *roles: str) -> str:
        """Return a development token for a user."""
        return mint_token(user, SECRET, roles=roles)

    def put_in_workspace(self, user_id: str, name: str) -> None:
        """Write a file to a user's workspace, as the tool `file_write` does."""
        self._wait_for(self._services.blobs.write(WORK, f"workspaces/{digest(user_id)}/{name}", b"mine"))

    @contextmanager
    def serving(self) -> Iterator["SampleApp"]:
        """Serve the app until the block ends.

        Raises:
            RuntimeError: The app did not start, or a sample could not be ingested.
        """
        thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))
        thread.start()
        try:
            if not self._is_ready.wait(START_GUARD_S) or self._error is not None:
                raise RuntimeError("The app did not start.") from self._error
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._stopping.set)
            thread.join()
            self._loop.close()

    def _wait_for(self, work: Awaitable[Any]) -> Any:
        async def done() -> Any:
            return await work

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(START_GUARD_S)

    async def _run(self) -> None:
        try:
            async with DurableServer(app_functions(), self.data / "durable.sqlite") as durable:
                await self._add_samples(durable)
                await self._serve(durable)
        except BaseException as error:  # noqa: BLE001  # raised again where the test waits
            self._error = error
            self._is_ready.set()
        finally:
            await self._services.close()

    async def _serve(self, durable: DurableServer) -> None:
        port = int(self.base_url.rpartition(":")[2])
        config = uvicorn.Config(
            make_app(durable.client), host="127.0.0.1", port=port, log_level="warning", lifespan="off"
        )
        server = QuickServer(config)
        task = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110  # uvicorn offers no event
            await asyncio.sleep(0.005)
        self._is_ready.set()
        await self._stopping.wait()
        server.stopping.set()
        await task

    async def _add_samples(self, durable: DurableServer) -> None:
        await self._services.ensure_prepared()
        for path in generate(self.data / "samples"):
            metadata = {"acl": ",".join(ACCESS[path.name])}
            await self._services.blobs.write(DOCUMENTS, path.name, path.read_bytes(), metadata=metadata)
        # One at a time, because nothing in this process restarts a document that had to wait.
        for name in ACCESS:
            instance = await durable.start("ingest_document", {"blob_name": name})
            await durable.until(instance, "Completed", "Failed")
        states = [state async for state in self._services.documents.all()]
        if unread := [state.filename for state in states if state.status != "ready"]:
            raise RuntimeError(f"Not ingested: {', '.join(unread)}.")


@contextmanager
def sample_app(folder: Path, model_server: ModelServer, **changes: Any) -> Iterator[SampleApp]:
    """Serve the app with the samples. Until the block ends, all code of this process uses its services."""
    services = _services_of(model_server, changes)
    with pytest.MonkeyPatch.context() as patch:
        use_services(services, patch)
        # The app sets this variable too; without it, the SDK warns.
        patch.setenv("AZURE_FUNCTIONS_DURABLE_STRICT_TYPING", "1")
        with SampleApp(folder, services).serving() as app:
            yield app
    parsers(services.settings.host.instance_memory_mb).close()


def _services_of(model_server: ModelServer, changes: Mapping[str, Any]) -> Services:
    dimensions = model_server.embedding_dimensions
    app_settings = fake_settings(
        openai_base_url=model_server.base_url,
        openai_api_key=model_server.api_key,
        chat_model=model_server.chat_model,
        embedding_model=model_server.embedding_model,
        embedding_dimensions=dimensions,
        dev_token_secret=SECRET,
        local_directory=local_directory(),
        agents_folder="samples/agents",
        rate_limit_per_minute=6000,
        max_concurrent_runs=100,
        max_open_streams=1000,
        **changes,
    )
    real = build_services(app_settings)
    return replace(
        fake_services(settings=app_settings),
        content_index=LocalSearchIndex(content_index("content", dimensions)),
        documents_index=LocalSearchIndex(documents_index("documents")),
        memory_index=LocalSearchIndex(memory_index("memory", dimensions)),
        chat_model=real.chat_model,
        vision_model=real.vision_model,
        embedder=real.embedder,
        directory=real.directory,
        other_models=real.other_models,
        closers=real.closers,
    )


@cache
def app_functions() -> SdkFunctions:
    """Return the app's orchestrations and activities. The result is cached, because an app's functions can be
    read only once.
    """
    app = df.DFApp()
    for module in (registration, ingest_activities):
        app.register_functions(module.blueprint)
    return SdkFunctions(app)


def use_services(services: Services, patch: pytest.MonkeyPatch) -> None:
    """Make all modules use these services and their settings, including modules that have already imported
    the accessors.
    """
    # Imported now, because a module that is imported later would keep these services after the test.
    api.app()
    for name in set(registration.ORCHESTRATORS.values()) | set(registration.ACTIVITIES.values()):
        importlib.import_module(name)
    replacements = {
        "get_services": (wiring.get_services, lambda: services),
        "get_settings": (settings.get_settings, lambda: services.settings),
    }
    for module in list(sys.modules.values()):
        for name, (original, replacement) in replacements.items():
            if getattr(module, name, None) is original:
                patch.setattr(module, name, replacement)
