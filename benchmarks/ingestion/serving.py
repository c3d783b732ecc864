"""Measures the steps after parsing: embedding and indexing with the local servers, and ingestion by the whole
stack.
"""

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import TableClient
from azure.search.documents import SearchClient
from azure.search.documents.indexes import SearchIndexClient
from azure.search.documents.indexes.models import SearchIndex
from azure.storage.blob import ContainerClient

from local.run_all.stack import LocalStack
from local.run_all.stack_settings import FREE_PORTS, StackSettings
from shared.platform.names import DOCUMENTS, DOCUMENTS_TABLE

EMBED_BATCH = 64
INDEX_BATCH = 500
_INDEX = "benchmark"
_POLL_S = 0.25
_TIMEOUT_S = 1800.0
_FIELDS = [
    {"name": "block_id", "type": "Edm.String", "key": True},
    {"name": "content", "type": "Edm.String", "searchable": True},
    {
        "name": "content_vector",
        "type": "Collection(Edm.Single)",
        "searchable": True,
        "dimensions": 384,
        "vectorSearchProfile": "vectors",
    },
]
_VECTORS = {
    "algorithms": [{"name": "hnsw", "kind": "hnsw"}],
    "profiles": [{"name": "vectors", "algorithm": "hnsw"}],
}


@contextmanager
def running_stack(folder: Path) -> Iterator[LocalStack]:
    """Yield a running local stack on free ports."""
    with LocalStack(StackSettings(FREE_PORTS, folder)) as stack:
        yield stack


def embed(stack: LocalStack, texts: Sequence[str]) -> float:
    """Return the seconds needed to embed the texts, in batches as large as those of the app."""
    headers = {"Authorization": f"Bearer {stack.secrets.model_key}"}
    address = f"http://127.0.0.1:{stack.ports.model}/v1/embeddings"
    began = time.perf_counter()
    with httpx.Client(headers=headers, timeout=600) as http:
        for start in range(0, len(texts), EMBED_BATCH):
            batch = [_reverse_words(text) for text in texts[start : start + EMBED_BATCH]]
            body = {"model": stack.app_settings["EMBEDDING_MODEL"], "input": batch}
            http.post(address, json=body).raise_for_status()
    return time.perf_counter() - began


def _reverse_words(text: str) -> str:
    """Return the text with its words in reverse order: a text of the same length that isn't in the model
    server's cache.
    """
    return " ".join(reversed(text.split()))


def index(stack: LocalStack, texts: Sequence[str], rows_a_request: int = INDEX_BATCH) -> float:
    """Return the seconds needed to index the texts, each with one vector."""
    credential = AzureKeyCredential(stack.secrets.search_key)
    chance = random.Random(1)
    definition = {"name": _INDEX, "fields": _FIELDS, "vectorSearch": _VECTORS}
    with SearchIndexClient(stack.search_url, credential) as indexes:
        indexes.create_index(SearchIndex(definition))
    rows = [
        {"block_id": str(place), "content": text, "content_vector": [chance.random() for _ in range(384)]}
        for place, text in enumerate(texts)
    ]
    began = time.perf_counter()
    with SearchClient(stack.search_url, _INDEX, credential) as client:
        for start in range(0, len(rows), rows_a_request):
            client.upload_documents(rows[start : start + rows_a_request])
    return time.perf_counter() - began


def ingest(stack: LocalStack, files: Sequence[Path]) -> tuple[float, float]:
    """Ingest files with the whole stack. Return the seconds until all are ready, and the peak memory in MB.

    Raises:
        RuntimeError: if a file fails, or not all are ready within half an hour.
    """
    connection = stack.storage_connection_string
    began = time.perf_counter()
    peak = 0.0
    with ContainerClient.from_connection_string(connection, DOCUMENTS) as container:
        for place, path in enumerate(files):
            with path.open("rb") as content:
                container.upload_blob(f"benchmark/{place}-{path.name}", content, metadata={"acl": "*"})
    with TableClient.from_connection_string(connection, DOCUMENTS_TABLE) as table:
        while _ready(table) < len(files):
            if time.perf_counter() - began > _TIMEOUT_S:
                raise RuntimeError("Not all files were ready within half an hour.")
            stack.check()
            peak = max(peak, _memory_mb(stack.host_pid))
            time.sleep(_POLL_S)
    return time.perf_counter() - began, round(peak, 1)


def _ready(table: TableClient) -> int:
    try:
        statuses = [row["status"] for row in table.query_entities("RowKey eq 'document'", select=["status"])]
    except ResourceNotFoundError:
        # The app creates the table during its first ingestion.
        return 0
    if "failed" in statuses:
        raise RuntimeError("A file could not be ingested; `make ingest-report` shows the reason.")
    return statuses.count("ready")


def _memory_mb(pid: int) -> float:
    host = psutil.Process(pid)
    total = 0
    for process in (host, *host.children(recursive=True)):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total / 2**20
