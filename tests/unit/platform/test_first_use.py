"""The SDKs are imported on first use, and not on the event loop: every stream of the process would stall."""

import json
import os
import subprocess
import sys

SDKS = [
    "openai",
    "httpx2",
    "azure.core",
    "azure.storage.blob",
    "azure.data.tables",
    "azure.search.documents",
    "aiohttp",
]

# Every adapter is called once, in a fresh process, with nothing listening; each import tells its thread.
FIRST_CALLS = """
import asyncio, importlib.abc, json, sys, threading
from shared.platform.errors import GroundworkError
from shared.platform.language_models.models import CallLimits, Prompt
from shared.platform.search import SearchRequest
from shared.platform.settings import Settings
from shared.wiring import build_services

imported = {}

class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        imported[name] = threading.current_thread() is threading.main_thread()

sys.meta_path.insert(0, Watch())

async def use(call):
    try:
        await call
    except GroundworkError as failed:
        return failed.code

async def main(settings):
    services = build_services(Settings(**settings))
    limits = CallLimits(timeout_s=60, max_retries=0)  # within it the SDK is imported
    prompt = Prompt(name="answer", system="s", user="u")
    calls = [
        anext(services.chat_model.stream(prompt, limits)),
        services.embedder.embed(["a"], limits),
        services.content_index.search(SearchRequest(text="a")),
        services.search_admin.ensure_index({"name": "a", "fields": []}),
        services.blobs.read("work", "a"),
        services.run_log.read("r1"),
        services.runs.get("r1"),
    ]
    codes = await asyncio.gather(*(use(call) for call in calls))
    await services.close()
    print(json.dumps({"codes": codes, "imported": imported}))

asyncio.run(main(json.loads(sys.argv[1])))
"""

# With a managed identity; the clients are only made, as there is nobody to ask for a token.
OPENINGS = """
import asyncio, importlib.abc, json, sys, threading
from shared.wiring import Connections
from shared.platform.settings import Settings

imported = {}

class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        imported[name] = threading.current_thread() is threading.main_thread()

sys.meta_path.insert(0, Watch())

async def main(settings):
    to = Connections(Settings(**settings))
    for connection in (to.model, to.blobs, to.tables, to.search_admin, to.search_index("a")):
        await connection.opened()
    await to.close()
    print(json.dumps({"codes": [], "imported": imported}))

asyncio.run(main(json.loads(sys.argv[1])))
"""

NOWHERE = "127.0.0.1:9"  # the discard port: nothing listens
MODELS = {"chat_model": "c", "embedding_model": "e", "embedding_dimensions": 3}
BY_KEY = {
    "azure_search_endpoint": f"http://{NOWHERE}",
    "azure_search_api_key": "k",
    "documents_storage": f"AccountName=a;AccountKey=a2V5;BlobEndpoint=http://{NOWHERE}/a;"
    f"TableEndpoint=http://{NOWHERE}/a",
    "openai_base_url": f"http://{NOWHERE}/v1",
    **MODELS,
}
BY_IDENTITY = {
    "azure_search_endpoint": "https://x.search.windows.net",
    "documents_storage_blob_uri": "https://x.blob.core.windows.net",
    "documents_storage_table_uri": "https://x.table.core.windows.net",
    "azure_openai_endpoint": "https://x.openai.azure.com",
    **MODELS,
}


def imports(program: str, settings: dict[str, object]) -> tuple[list[str], dict[str, bool]]:
    """The codes of failed calls; and by module, whether the event loop's thread imported it."""
    command = [sys.executable, "-c", program, json.dumps(settings)]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": "."}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=environment)
    found = json.loads(done.stdout.splitlines()[-1])
    return found["codes"], found["imported"]


def test_no_call_imports_an_sdk_on_the_event_loop() -> None:
    codes, on_loop = imports(FIRST_CALLS, BY_KEY)
    assert codes == ["NetworkError"] * 7
    assert {name: on_loop[name] for name in SDKS} == dict.fromkeys(SDKS, False)


def test_nor_does_one_by_identity() -> None:
    _, on_loop = imports(OPENINGS, BY_IDENTITY)
    wanted = [*SDKS, "azure.identity"]
    assert {name: on_loop[name] for name in wanted} == dict.fromkeys(wanted, False)
