"""A separate stack with the papers, and with data of each person that the others try to reach."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient

from local.run_all.stack import DOCUMENTS_CONTAINER, LocalStack
from shared.documents.ids import SIDECAR_SUFFIX, document_id, files_of_thread
from tests.e2e.access.people import PAPERS, PEOPLE, QUESTION, Paper, Person, foreign
from tests.e2e.stack_client import HANG_GUARD_S, client_of, eventually
from tests.unit.ingestion.figure_files import FigureMaker

# Not everyone, because a summary takes some seconds.
SUMMARISERS = ("owner", "member", "public only", "administrator", "quoted name")
STREAM_SECONDS = 2.0  # time limit of a stream, because tests read streams to their end


@dataclass
class AccessCorpus:
    """The running stack, and the ids of the data that each person created in it."""

    stack: LocalStack
    callers: dict[str, httpx.Client] = field(default_factory=dict)
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    scoped_runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    summaries: dict[str, str] = field(default_factory=dict)
    figure: str = ""
    thread_id: str = ""
    block_ids: dict[str, list[str]] = field(default_factory=dict)

    def doc_id(self, key: str) -> str:
        return document_id(self.blob_name(PAPERS[key]))

    def blob_name(self, paper: Paper) -> str:
        folder = files_of_thread(self.thread_id) if paper.in_thread else ""
        return folder + paper.filename

    def caller(self, name: str) -> httpx.Client:
        return self.callers[name]

    def client(self, headers: dict[str, str]) -> httpx.Client:
        return httpx.Client(base_url=f"{self.stack.base_url}/api", headers=headers, timeout=HANG_GUARD_S)

    def client_of(self, person: Person) -> httpx.Client:
        return client_of(self.stack, person.token(self.stack.secrets.token_secret))

    def ask(self, caller: httpx.Client, **body: Any) -> dict[str, Any]:
        """Ask a question, wait for the end of the run and return the run."""
        response = caller.post(
            "/chat", json={"question": QUESTION, **body}, headers={"Prefer": "respond-async"}
        )
        assert response.status_code == 202, response.text
        path = f"/runs/{response.json()['run_id']}"
        ended = eventually(lambda: ended_run(caller, path))
        assert ended["status"] in ("completed", "waiting"), ended
        return ended

    def close(self) -> None:
        for caller in self.callers.values():
            caller.close()


def ended_run(caller: httpx.Client, path: str) -> dict[str, Any] | None:
    view: dict[str, Any] = caller.get(path).json()
    return None if view["status"] == "running" else view


def fill(world: AccessCorpus, folder: Path) -> None:
    """Upload the papers, let every person ask, and wait until everything is stored."""
    stack = world.stack
    world.callers = {name: world.client_of(person) for name, person in PEOPLE.items()}
    world.caller("owner").get("/documents").raise_for_status()  # the first request creates tables and indexes
    response = world.caller("owner").post("/threads", json={"title": "with a file"})
    world.thread_id = response.json()["thread_id"]
    for paper in PAPERS.values():
        put(stack, world.blob_name(paper), paper, content_of(paper, folder))
    eventually(lambda: all_ready(stack))
    world.figure = eventually(lambda: figure_name(stack, world.doc_id("group")))
    for name in PEOPLE:
        note_blocks(world, name)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: ask_everything(world, name), PEOPLE))


def ask_everything(world: AccessCorpus, name: str) -> None:
    """Create a run, a thread and a summary as the person, and a run that names forbidden documents."""
    caller = world.caller(name)
    world.runs[name] = world.ask(caller)
    aimed = [world.doc_id(paper.key) for paper in foreign(PEOPLE[name])]
    world.scoped_runs[name] = world.ask(caller, doc_ids=aimed)
    if name not in SUMMARISERS:
        return
    order = {"doc_ids": [world.doc_id("public"), *aimed[:2]]}
    response = caller.post("/summaries", json=order)
    assert response.status_code == 202, response.text
    world.summaries[name] = response.json()["summary_id"]


def note_blocks(world: AccessCorpus, name: str) -> None:
    """Record the block ids of the papers that a person may read, as returned by their search."""
    hits = world.caller(name).post("/search", json={"query": QUESTION, "top_k": 50}).json()["results"]
    for paper in PAPERS.values():
        ids = [hit["block_id"] for hit in hits if hit["filename"] == paper.filename]
        if ids:
            world.block_ids[paper.key] = ids


def content_of(paper: Paper, folder: Path) -> bytes:
    if paper.suffix == "txt":
        return paper.text.encode()
    if paper.suffix == "csv":
        return f"Calibration interval of the turbine,Days\nKestrel {paper.mark},{paper.days}\n".encode()
    maker = FigureMaker()
    maker.page()
    maker.heading(f"Calibration {paper.mark}")
    maker.paragraph(paper.text)
    maker.chart(bars=4, caption=f"Figure 1: Calibration interval of the turbine {paper.mark}")
    return maker.write(folder / paper.filename).read_bytes()


def put(stack: LocalStack, name: str, paper: Paper, content: bytes) -> None:
    """Upload the access list, which must come first, and then the file."""
    rights = {"acl": list(paper.acl), "owner_id": paper.owner_id, "project_id": paper.project_id}
    with BlobServiceClient.from_connection_string(stack.storage_connection_string) as service:
        files = service.get_container_client(DOCUMENTS_CONTAINER)
        files.upload_blob(name + SIDECAR_SUFFIX, json.dumps(rights).encode(), overwrite=True)
        files.upload_blob(name, content, overwrite=True)


def all_ready(stack: LocalStack) -> bool:
    """Return whether all papers are ready. The states are read from storage, because no user can see all
    papers.
    """
    stack.check()
    with TableServiceClient.from_connection_string(stack.storage_connection_string) as tables:
        # The table also contains rows for lists and feeds, which have no status.
        entities = tables.get_table_client("documents").list_entities()
        rows = [entity for entity in entities if "status" in entity]
    assert not [row["blob_name"] for row in rows if row["status"] == "failed"]
    return len([row for row in rows if row["status"] == "ready"]) == len(PAPERS)


def figure_name(stack: LocalStack, doc_id: str) -> str | None:
    with BlobServiceClient.from_connection_string(stack.storage_connection_string) as service:
        work = service.get_container_client("work")
        blobs = work.list_blob_names(name_starts_with=f"versions/{doc_id}/")
        names = [name.rpartition("/")[2] for name in blobs if "/figures/" in name]
    return names[0] if names else None
