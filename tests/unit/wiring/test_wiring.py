"""Tests for wiring: services are created lazily, and every port has an adapter."""

import subprocess
import sys
from dataclasses import fields

from shared.wiring import Connections, Services, build_services
from tests.fakes.services import fake_services, fake_settings

# Loaded by `shared.platform.loading` on first use; the other SDKs are imported with their modules.
SDKS = ("azure.storage", "azure.identity", "openai", "microsoft_agents", "psycopg", "tokenizers", "jwt")

BUILD = """
import sys
import shared.platform.telemetry
from shared.platform.settings import Settings
from shared.wiring import build_services
build_services(Settings.of(
    azure_search_endpoint="https://x.search.windows.net", azure_search_api_key="k",
    DocumentsStorage="UseDevelopmentStorage=true", openai_base_url="http://127.0.0.1:1/v1",
    chat_model="c", embedding_model="e", embedding_dimensions=3,
    owner_id_key="ids of people, 0123456789 and letters",
))
print(*sorted(sys.modules), sep="\\n")
"""


def test_building_the_services_imports_no_sdk_that_is_loaded_on_first_use() -> None:
    done = subprocess.run([sys.executable, "-c", BUILD], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    heavy = [name for name in loaded if name.startswith((*SDKS, "structlog", "httpx2"))]
    assert heavy == []


async def test_every_port_has_an_adapter_and_closing_unused_ones_is_fine() -> None:
    services = build_services(
        fake_settings(
            web_search_url="https://search.example.org/search",
            agent_tools="python,github",
            github_repositories="contoso/app",
            sharepoint_libraries="https://contoso.sharepoint.com/sites/hr",
            allowed_tenants="72f988bf-86f1-41af-91ab-2d7cd011db47",
        )
    )
    unset = {field.name for field in fields(Services) if getattr(services, field.name) is None}
    assert unset == set()
    assert services.tool_clients.keys() == {"python", "github"}
    await services.close()
    await services.close()


async def test_closing_the_services_ends_what_was_opened() -> None:
    services = build_services(fake_settings())
    close = services.closers[0]
    connections = close.__self__  # type: ignore[attr-defined]
    assert isinstance(connections, Connections)
    before = connections.model.client()
    await services.close()
    assert before.is_closed()


async def test_fakes_can_stand_in_for_everything() -> None:
    services = fake_services()
    await services.blobs.write("work", "a", b"1")
    assert await services.blobs.read("work", "a") == b"1"
    await services.close()
