"""Consistency check: reads tables, blobs and indexes with the plain SDKs and compares them with the expected
state.

It imports nothing of the app, because shared code could be wrong on both sides.
"""

import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import httpx
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import TableServiceClient
from azure.search.documents import SearchClient
from azure.storage.blob import BlobServiceClient

from evals.chaos.world import Paper, World, signature

CONTENT_INDEX, DOCUMENTS_INDEX = "content-blocks", "documents-metadata"
CONTENT_FIELDS = ["block_id", "filename", "content", "access_control_list"]
DOCUMENT_FIELDS = ["doc_id", "filename", "access_control_list"]
Entity: TypeAlias = dict[str, Any]
OPEN = frozenset({"Running", "Pending", "ContinuedAsNew"})
ENDS = frozenset({"COMPLETE", "ERROR"})
OF_RUNS = ("run-log", "work")
# Suffix of access list files, which are stored next to their documents.
READERS = ".acl.json"


@dataclass(frozen=True)
class Stores:
    """The addresses and keys of the stores."""

    storage: str
    search_url: str
    search_key: str
    host_url: str
    host_headers: Mapping[str, str]


@dataclass
class Finding:
    """The inconsistencies that a check has found, by kind, each described in one line."""

    lost: list[str] = field(default_factory=list)
    orphaned: list[str] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    events_lost: list[str] = field(default_factory=list)
    events_doubled: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not any(vars(self).values())

    def without(self, reported: set[str]) -> "Finding":
        """Return the findings that earlier rounds have not reported."""
        return Finding(
            **{kind: [one for one in lines if one not in reported] for kind, lines in vars(self).items()}
        )


class Checker:
    """Checker that compares all stores with the expected world."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._blobs = BlobServiceClient.from_connection_string(stores.storage)
        self._tables = TableServiceClient.from_connection_string(stores.storage)
        # Blobs without a signature of an erased user, which needn't be read again.
        self._unsigned: set[tuple[str, str]] = set()

    def look(self, world: World) -> Finding:
        """Return all inconsistencies between the stores and the expected world."""
        finding = Finding(leaked=list(world.leaks), stuck=list(world.unfinished))
        self._check_papers(world, finding)
        self._check_runs(world, finding)
        self._check_persons(world, finding)
        run_ids = {run.run_id for run in world.runs}
        finding.stuck += [
            f"{name} {instance}"
            for name, instance in self._open_instances()
            if name != "answer_question"
            # A run whose id never reached the client may wait for a clarification forever, so it doesn't
            # count as stuck.
            or instance in run_ids
        ]
        return finding

    def block_ids(self) -> set[str]:
        """Return the ids of all indexed blocks of documents created by this evaluation."""
        return {row["block_id"] for row in self._rows(CONTENT_INDEX)}

    def _check_papers(self, world: World, finding: Finding) -> None:
        blobs = {blob.name for blob in self._blobs.get_container_client("documents").list_blobs("chaos-")}
        states = self._states()
        blocks: dict[str, list[Entity]] = {}
        for row in self._rows(CONTENT_INDEX):
            blocks.setdefault(row["filename"], []).append(row)
        listed = {row["filename"]: row for row in self._rows(DOCUMENTS_INDEX)}
        papers = {paper.name: paper for paper in world.living()}
        finding.orphaned += [f"file {name}" for name in blobs if name.removesuffix(READERS) not in papers]
        finding.orphaned += [f"state {name}" for name in states.keys() - papers.keys()]
        finding.orphaned += [f"rows {name}" for name in (blocks.keys() | listed.keys()) - papers.keys()]
        for name, paper in papers.items():
            state, entry = states.get(name), listed.get(name)
            if name in blobs and state is not None and entry is not None:
                check_paper(paper, state, entry, blocks.get(name, []), finding)
            else:
                there = {"file": name in blobs, "state": state is not None, "row": entry is not None}
                finding.lost.append(f"{name}: {there}")

    def _states(self) -> dict[str, Entity]:
        states = {}
        for entity in self._tables.get_table_client("documents").list_entities():
            text = "".join(str(entity[name]) for name in sorted(entity) if name.startswith("state_"))
            # This entity only lists a document as changed.
            if not text:
                continue
            state = json.loads(text)
            if state["blob_name"].startswith("chaos-"):
                states[state["blob_name"]] = state
        return states

    def _rows(self, index: str) -> Iterator[Entity]:
        credential = AzureKeyCredential(self._stores.search_key)
        with SearchClient(self._stores.search_url, index, credential) as client:
            seen = 0
            fields = CONTENT_FIELDS if index == CONTENT_INDEX else DOCUMENT_FIELDS
            while True:
                page = list(client.search("*", top=1000, skip=seen, order_by=fields[:1], select=fields))
                yield from (row for row in page if row["filename"].startswith("chaos-"))
                seen += len(page)
                if len(page) < 1000:
                    return

    def _check_runs(self, world: World, finding: Finding) -> None:
        for run in world.runs:
            logged = self._log(run.run_id)
            ends = sum(name in ENDS for name in logged)
            if ends == 0:
                finding.lost.append(f"run {run.run_id} has no end")
            finding.events_doubled += [f"run {run.run_id}: {ends} ends"] * (ends > 1)
            doubled = [number for number, count in Counter(run.numbers).items() if count > 1]
            finding.events_doubled += [f"run {run.run_id}: event {number}" for number in doubled]
            if missing := set(range(1, len(logged) + 1)) - set(run.numbers):
                finding.events_lost.append(f"run {run.run_id}: {sorted(missing)}")

    def _log(self, run_id: str) -> list[str]:
        blob = self._blobs.get_blob_client("run-log", f"{run_id}/events.jsonl")
        try:
            lines = blob.download_blob().readall().decode().splitlines()
        except ResourceNotFoundError:
            return []
        names = [str(json.loads(line)["name"]) for line in lines]
        # Other names belong to internal lines, which are not sent to readers.
        return [name for name in names if name.isupper()]

    def _check_persons(self, world: World, finding: Finding) -> None:
        # A thread of an erased user may remain until the last pass, 15 minutes later, but without its text.
        texts = list(self._texts())
        for person in world.erased:
            finding.orphaned += [f"{person} in {place}" for place, text in texts if signature(person) in text]

    def _texts(self) -> Iterator[tuple[str, str]]:
        for table in self._tables.list_tables():
            for entity in self._tables.get_table_client(table.name).list_entities():
                yield f"table {table.name}", str(entity)
        for name in OF_RUNS:
            container = self._blobs.get_container_client(name)
            for blob in container.list_blobs():
                if (blob.name, blob.etag) in self._unsigned:
                    continue
                # The blob may be deleted after it was listed.
                with contextlib.suppress(ResourceNotFoundError):
                    text = container.download_blob(blob.name).readall().decode(errors="replace")
                    if signature("") not in text:
                        self._unsigned.add((blob.name, blob.etag))
                    yield f"blob {name}/{blob.name}", text

    def _open_instances(self) -> list[tuple[str, str]]:
        answer = httpx.get(
            f"{self._stores.host_url}/runtime/webhooks/durabletask/instances",
            headers=dict(self._stores.host_headers),
            params={"top": "5000", "showInput": "false"},
            timeout=60,
        )
        if answer.status_code != 200:
            return [("the host", f"answers {answer.status_code}")]
        statuses = answer.json()
        return [(one["name"], one["instanceId"]) for one in statuses if one["runtimeStatus"] in OPEN]


def check_paper(paper: Paper, state: Entity, row: Entity, blocks: Sequence[Entity], finding: Finding) -> None:
    """Add a finding for each defect of a document: it is not ready, is incomplete, has blocks of several
    versions, or is visible to others than its readers.
    """
    if state["status"] != "ready" or state["wish"] != state["settled"]:
        finding.stuck.append(f"{paper.name}: {state['status']}, wish {state['wish']} of {state['settled']}")
    text = " ".join(" ".join(block["content"].split()) for block in blocks)
    current = paper.sentences(paper.version)
    finding.lost += [f"{paper.name}: {one}" for one in current if one not in text]
    old = {one for version in range(1, paper.version) for one in paper.sentences(version)}
    finding.orphaned += [f"{paper.name}: {one}" for one in old - set(current) if one in text]
    allowed = {*paper.readers, state["rights"].get("owner_id")}
    for one in (*blocks, row):
        if strangers := set(one["access_control_list"]) - allowed:
            finding.leaked.append(f"{paper.name}: {sorted(strangers)}")
