"""The app's HTTP functions over services that the test chooses, without a host or network ports."""

import json
import time
from types import SimpleNamespace
from typing import Any

import azure.durable_functions as df
import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from functions.api import app
from shared.access.identity import sign_dev_token
from shared.wiring import Services
from tests.contract.ingestion.driving import ingest
from tests.fakes.services import fake_settings

SECRET = "a secret of at least thirty-two characters"


class IngestingClient:
    """A durable client whose orchestrations wait until `run` is called, which runs them to their end."""

    def __init__(self, services: Services) -> None:
        self.started: list[tuple[str, str]] = []
        self._services = services

    async def get_status(self, instance: str) -> Any:
        waiting = instance in {one for one, _ in self.started}
        status = df.OrchestrationRuntimeStatus.Pending if waiting else None
        return SimpleNamespace(runtime_status=status)

    async def start_new(self, name: str, instance: str, payload: dict[str, Any]) -> str:
        assert name == "ingest_document"
        if instance in {one for one, _ in self.started}:
            raise Exception("It is waiting already.")  # noqa: TRY002 - what the SDK raises
        self.started.append((instance, payload["blob_name"]))
        return instance

    async def run(self) -> list[str]:
        """Run all started orchestrations to their end, and return their outcomes."""
        outcomes: list[str] = []
        while self.started:
            instance, blob_name = self.started.pop(0)
            outcomes.append((await ingest(self._services, blob_name, instance, self)).outcome)
        return outcomes


def make_app(client: object) -> ASGIApp:
    """Return the app, with this durable client for the routes that start orchestrations."""
    served = app()

    async def with_client(scope: Scope, receive: Receive, send: Send) -> None:
        await served({**scope, "state": {"client": client}}, receive, send)

    return with_client


def settings_of_tests(**changes: Any) -> Any:
    """Return settings for tests over HTTP. Streams may take long, because a busy machine delays the events of
    a run; tests of streams without an end call `end_streams_soon`.
    """
    return fake_settings(dev_token_secret=SECRET, **changes)


def end_streams_soon(services: Services) -> None:
    """Limit the duration of streams to 0.2 seconds."""
    services.settings = services.settings.changed(stream_seconds=0.2)


def connect(monkeypatch: pytest.MonkeyPatch, services: Services) -> Services:
    """Make the functions use these services, and return the services."""
    monkeypatch.setattr("shared.wiring.get_services", lambda: services)
    return services


def as_user(served: ASGIApp, user_id: str, **claims: Any) -> httpx.AsyncClient:
    token = sign_dev_token({"sub": user_id, "exp": int(time.time()) + 600, **claims}, SECRET)
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(served),
        base_url="http://app/api",
        headers={"Authorization": f"Bearer {token}"},
    )


def problem_of(answered: httpx.Response) -> tuple[int, str]:
    """Return the status and code of a response with problem details."""
    assert answered.headers["content-type"] == "application/problem+json", answered.text
    content = json.loads(answered.content)
    assert content["status"] == answered.status_code
    return answered.status_code, content["title"]
