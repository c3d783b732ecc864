"""Hostile passages and a sub-agent whose model obeys them: it reads only permitted documents, and its report
proves nothing.
"""

import json

import pytest

from shared.access.security_filter import security_filter
from shared.answering.passages import task_message
from shared.platform.names import WORK
from shared.retrieval.models import Hit
from shared.tools.models import WebHit
from shared.wiring import Services
from tests.contract.injection.hostile_document import PASSAGES
from tests.fakes.blob_store import InMemoryBlobStore
from tests.fakes.run_log import InMemoryRunLog
from tests.fakes.search_index import InMemorySearchIndex
from tests.unit.subagents.child_models import CountedModel
from tests.unit.subagents.stored_child import RUN, SECRET, calls, evidence, proof, stored_child
from tests.world import ANNA

pytestmark = [pytest.mark.contract, pytest.mark.attack("orders in documents")]

HOSTILE = pytest.mark.parametrize("passage", PASSAGES, ids=[passage["id"] for passage in PASSAGES])
FALSE = "The maximum pressure is 99 bar."


def obeying(order: str) -> CountedModel:
    """Return a model that requests forbidden documents, then reports as instructed."""
    requested_calls = [
        ("rag_semantic_search", {"query": order[:500] or "salary"}),
        ("rag_semantic_search", {"query": "secret valve", "user_id": "ben", "project_id": "board"}),
        ("rag_semantic_search", {"query": "secret valve", "filters": {"doc_id": ["closed"]}}),
        ("web_search", {"query": order[:200]}),
        ("delete_document", {"doc_id": "old"}),
    ]
    report = evidence(
        (order, (proof("old", FALSE), proof("closed", SECRET))),
        (FALSE, (proof("old", order),)),
    )
    return CountedModel(
        calls(*((name, json.dumps(arguments)) for name, arguments in requested_calls)), report
    )


async def poisoned(services: Services, text: str) -> None:
    """Put the hostile text into every passage, the name and the metadata of one document."""
    content, documents = services.content_index, services.documents_index
    assert isinstance(content, InMemorySearchIndex)
    assert isinstance(documents, InMemorySearchIndex)
    for row in content.rows.values():
        if row["doc_id"] == "old":
            row.update(content=f"The maximum pressure. {text}", filename=text, heading_path=text)
    documents.rows["old"].update(filename=text, title=text, author=text, summary_brief=text)


@HOSTILE
async def test_an_obedient_sub_agent_reads_no_more_than_it_may_and_proves_nothing(
    passage: dict[str, str],
) -> None:
    world = await stored_child(obeying(passage["obeyed"]), pages=200, doc_ids=("old", "new"))
    await poisoned(world.services, passage["text"])
    await world.run()
    for index in (world.services.content_index, world.services.documents_index):
        assert isinstance(index, InMemorySearchIndex)
        assert all((security_filter(ANNA) in (request.filter or "")) for request in index.requests)
    state = await world.state()
    # The opening search, and three calls for a document that it may not read.
    assert [use.success for use in state.tool_uses] == [True, True, True, True]
    assert state.tool_uses[3].result_count == 0  # of a document that it may not read
    assert {hit.doc_id for hit in state.hits} <= {"old", "new"}
    assert SECRET not in stored(world.services)
    proofs = [one.quote for finding in state.findings for one in finding.proofs]
    assert not any(FALSE in quote or SECRET in quote for quote in proofs)


@HOSTILE
def test_a_passage_stays_in_its_element(passage: dict[str, str]) -> None:
    text = passage["text"]
    hit = Hit(block_id="b", doc_id="d", filename=text, heading_path=text, content=text)
    page = WebHit(url="https://pages.example/p", title=text, text=text)
    plain = task_message(
        "Q",
        [("d", "n")],
        [hit.model_copy(update={"content": "c", "filename": "n", "heading_path": "h"})],
        {},
        [page.model_copy(update={"title": "t", "text": "t"})],
        then="work",
    )
    hostile = task_message("Q", [("d", text)], [hit], {}, [page], then="work")
    assert hostile.count("<") == plain.count("<")


def stored(services: Services) -> str:
    """Return all lines and values of the run."""
    blobs, log = services.blobs, services.run_log
    assert isinstance(blobs, InMemoryBlobStore)
    assert isinstance(log, InMemoryRunLog)
    values = [blob.content.decode() for name, blob in blobs.containers[WORK].items()]
    return "".join([*(event.to_line() for event in log.lines(RUN)), *values])
