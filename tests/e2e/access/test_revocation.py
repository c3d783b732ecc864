"""Access to a document is withdrawn, and every later request must respect that: search, answers, links,
pictures, summaries and tools.

The owner uploads one document and opens it to a reader, who uses every feature with it. Then the owner
withdraws the access. All later checks are made immediately, without a wait.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from shared.tools.registry import bound_tool
from shared.wiring import Services
from tests.e2e.access.corpus import AccessCorpus
from tests.e2e.access.people import PEOPLE
from tests.e2e.access.probes import events_of
from tests.e2e.stack_client import eventually
from tests.unit.ingestion.figure_files import FigureMaker

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), pytest.mark.attack("access matrix")]

READER = "public only"
MARK = "qzspindle"
FACT = f"The spindle of the Harrier lathe turns at 4700 rpm according to {MARK}."
QUESTION = "How fast does the spindle of the Harrier lathe turn?"


@dataclass(frozen=True)
class Before:
    """The reader's references to the document at the moment when access is withdrawn."""

    doc_id: str
    run: dict[str, Any]
    summary_id: str
    block_ids: list[str]

    @property
    def figure(self) -> str:
        return str(self.run["answer"]["figures"][0]["path"]).removeprefix("/api")


@pytest.fixture(scope="module")
def opened(world: AccessCorpus, tmp_path_factory: pytest.TempPathFactory) -> Before:
    """Return references to the document while it is open to its reader."""
    doc_id = upload(world, lathe_pdf(tmp_path_factory.mktemp("lathe")))
    reader = world.caller(READER)
    run = world.ask(reader, question=QUESTION)
    assert MARK in run["answer"]["text"]
    assert run["answer"]["figures"][0]["image_url"]
    summary = reader.post("/summaries", json={"doc_ids": [doc_id]}, headers={"Prefer": "wait=60"}).json()
    path = f"/summaries/{summary['summary_id']}"
    eventually(lambda: reader.get(path).json()["status"] == "completed")
    assert MARK in reader.get(path).text
    eventually(lambda: MARK in reader.get("/memory").text)
    hits = find_hits(reader)
    assert hits
    return Before(doc_id, run, summary["summary_id"], [hit["block_id"] for hit in hits])


@pytest.fixture(scope="module")
def before(world: AccessCorpus, opened: Before) -> Before:
    """Return the same references after the owner has withdrawn access, without any wait."""
    closed = world.caller("owner").put(f"/documents/{opened.doc_id}/access", json={"acl": []})
    assert closed.status_code == 200, closed.text
    return opened


def lathe_pdf(folder: Path) -> bytes:
    maker = FigureMaker()
    maker.page()
    maker.heading("The Harrier lathe")
    maker.paragraph(f"{FACT} It is oiled by two people, who note what they see.")
    maker.chart(bars=5, caption=f"Figure 1: Speed of the spindle of the Harrier lathe, {MARK}")
    return maker.write(folder / "lathe.pdf").read_bytes()


def upload(world: AccessCorpus, content: bytes) -> str:
    response = world.caller("owner").post(
        "/documents",
        data={"acl": PEOPLE[READER].user_id},
        files={"file": (f"lathe-{MARK}.pdf", content)},
    )
    assert response.status_code == 202, response.text
    doc_id = str(response.json()["doc_id"])
    eventually(lambda: world.caller("owner").get(f"/documents/{doc_id}").json()["status"] == "ready")
    return doc_id


def find_hits(caller: httpx.Client) -> list[dict[str, Any]]:
    hits = caller.post("/search", json={"query": QUESTION, "top_k": 50}).json()["results"]
    return [hit for hit in hits if MARK in hit["filename"]]


def test_the_next_search_and_the_next_list_do_not_find_it(world: AccessCorpus, before: Before) -> None:
    reader = world.caller(READER)
    assert find_hits(reader) == []
    assert MARK not in reader.get("/documents").text
    aimed = {"query": MARK, "filters": {"doc_id": before.doc_id}}
    assert reader.post("/search", json=aimed).json()["result_count"] == 0


def test_the_document_its_file_and_its_pictures_are_not_there(world: AccessCorpus, before: Before) -> None:
    reader = world.caller(READER)
    for path in ("", "/content"):
        assert reader.get(f"/documents/{before.doc_id}{path}").status_code == 404
    assert reader.get(before.figure).status_code == 404
    headers = {"If-None-Match": world.caller("owner").get(before.figure).headers["etag"]}
    assert reader.get(before.figure, headers=headers).status_code == 404
    assert world.caller("owner").get(before.figure, headers=headers).status_code == 304


def test_links_of_a_stored_answer_are_refused_and_its_pictures_not_signed(
    world: AccessCorpus, before: Before
) -> None:
    reader = world.caller(READER)
    run = reader.get(f"/runs/{before.run['run_id']}").json()
    messages = reader.get(f"/threads/{run['thread_id']}/messages").json()["messages"]
    for answer in (run["answer"], messages[0]["answer"]):
        assert answer["citations"]
        for cited in answer["citations"]:
            url = cited["url"].removeprefix("/api").partition("#")[0]
            assert reader.get(url).status_code == 404
            assert world.caller("owner").get(url).status_code == 200
        assert [figure["image_url"] for figure in answer["figures"]] == [None] * len(answer["figures"])


def test_the_next_question_is_answered_without_it(world: AccessCorpus, before: Before) -> None:
    reader = world.caller(READER)
    for body in ({}, {"doc_ids": [before.doc_id]}, {"thread_id": before.run["thread_id"]}):
        run = world.ask(reader, question=QUESTION, **body)
        answer = run["answer"]
        assert MARK not in answer["text"], body
        assert before.doc_id not in str(answer), body
        assert MARK not in reader.get(f"/runs/{run['run_id']}/events").text, body


def test_a_summary_of_it_is_withheld_and_none_is_made_anew(world: AccessCorpus, before: Before) -> None:
    reader = world.caller(READER)
    path = f"/summaries/{before.summary_id}"
    assert reader.get(path).status_code == 200
    assert MARK not in reader.get(path).text
    summary = reader.post("/summaries", json={"doc_ids": [before.doc_id]}).json()
    again = f"/summaries/{summary['summary_id']}"
    eventually(lambda: reader.get(again).json()["status"] == "failed")
    assert MARK not in reader.get(again).text


def test_memory_keeps_the_question_and_not_the_answer(world: AccessCorpus, before: Before) -> None:
    memories = world.caller(READER).get("/memory").json()["memories"]
    (memory,) = [one for one in memories if one["memory_id"] == before.run["run_id"]]
    assert (memory["question"], memory["answer_summary"]) == (QUESTION, "")


def test_live_status_tells_nothing_of_it(world: AccessCorpus, before: Before) -> None:
    hour_ago = int((time.time() - 3600) * 1_000_000)
    for name, is_visible in ((READER, False), ("owner", True)):
        events = events_of(world.caller(name), "/documents/events", after=hour_ago)
        assert (before.doc_id in [event["doc_id"] for event in events]) == is_visible


async def test_no_tool_gives_it(before: Before, services: Services) -> None:
    reader = PEOPLE[READER].context
    calls: dict[str, dict[str, Any]] = {
        "rag_semantic_search": {"query": QUESTION, "top_k": 50},
        "rag_list_documents": {"limit": 100},
        "rag_get_document": {"doc_id": before.doc_id},
        "rag_metadata_search": {"query": MARK},
        "rag_facets": {},
        "list_tables": {"limit": 100},
        "rerank": {"query": QUESTION, "block_ids": before.block_ids},
        "grade": {"query": QUESTION, "block_ids": before.block_ids},
        "recall_memory": {"query": QUESTION},
    }
    for block_id in before.block_ids:
        viewed = await bound_tool("view_figure", services, reader).execute(block_id=block_id)
        assert not viewed["success"]
    for tool, arguments in calls.items():
        assert MARK not in str(await bound_tool(tool, services, reader).execute(**arguments)), tool


def test_it_is_open_again_as_soon_as_its_owner_says_so(world: AccessCorpus, before: Before) -> None:
    reader = world.caller(READER)
    path = f"/documents/{before.doc_id}"
    opened = world.caller("owner").put(f"{path}/access", json={"acl": [PEOPLE[READER].user_id]})
    assert opened.status_code == 200
    assert reader.get(f"{path}/content").status_code == 200
    assert find_hits(reader)
    assert world.caller("owner").put(f"{path}/access", json={"acl": ["another"]}).status_code == 200
    assert reader.get(f"{path}/content").status_code == 404
    assert find_hits(reader) == []


def test_only_the_owner_sees_who_may_read(world: AccessCorpus, before: Before) -> None:
    document = world.caller("owner").get(f"/documents/{before.doc_id}").json()
    assert (document["owner_id"], document["acl"]) == ("olga", ["another", "olga"])
