"""Every tool of the registry x every person: models get only what the person may read."""

from typing import Any

import pytest

from shared.access.security_filter import in_thread
from shared.tools.registry import TOOLS, bound_tool
from shared.wiring import Services
from tests.e2e.access.corpus import AccessCorpus
from tests.e2e.access.people import PAPERS, PEOPLE, QUESTION
from tests.e2e.access.routes import tool_result
from tests.e2e.access.tools import probe_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), pytest.mark.attack("access matrix")]


def test_every_open_paper_has_blocks_to_reach_for(world: AccessCorpus) -> None:
    assert set(world.block_ids) == set(PAPERS) - {"nobody", "conversation"}


async def test_only_its_owner_reads_a_file_and_only_in_its_conversation(
    world: AccessCorpus, services: Services
) -> None:
    """Check this even for a caller who, because of a defect, is bound to another person's conversation."""
    doc_id, mark = world.doc_id("conversation"), PAPERS["conversation"].mark
    for name, person in PEOPLE.items():
        for thread_id in ("", "another", world.thread_id):
            reader = in_thread(person.context, thread_id)
            search = bound_tool("rag_semantic_search", services, reader)
            hits = await search.execute(query=QUESTION, top_k=50)
            listed = await bound_tool("rag_list_documents", services, reader).execute(limit=100)
            read = await bound_tool("read_pages", services, reader).execute(doc_id=doc_id, last=10)
            is_own = (name, thread_id) == ("owner", world.thread_id)
            assert [mark in str(one) for one in (hits, listed, read)] == [is_own] * 3, (name, thread_id)


def test_a_question_in_its_conversation_cites_a_file(world: AccessCorpus) -> None:
    caller, doc_id = world.caller("owner"), world.doc_id("conversation")
    aimed: dict[str, Any] = {"doc_ids": [doc_id]}
    run = world.ask(caller, thread_id=world.thread_id, **aimed)
    cited = [one["url"] for one in run["answer"]["citations"] if one["doc_id"] == doc_id]
    assert cited, run["answer"]
    path = cited[0].removeprefix("/api").partition("#")[0]
    opened = {name: world.caller(name).get(path).status_code for name in ("owner", "administrator")}
    assert opened == {"owner": 200, "administrator": 404}
    body = {"model": "groundwork", "messages": [{"role": "user", "content": QUESTION}]}
    elsewhere = (
        world.ask(caller, **aimed)["answer"],
        caller.post("/v1/chat/completions", json=body).json(),
        tool_result(world, "owner", "ask", question=QUESTION, thread_id=world.thread_id, **aimed),
    )
    assert [doc_id in str(answer) for answer in elsewhere] == [False] * 3


def test_operators_see_no_name_of_a_file_for_one_conversation(world: AccessCorpus) -> None:
    for path in ("/maintenance/audit", "/maintenance/failed", "/audit"):
        answer = world.caller("administrator").get(path)
        assert answer.status_code == 200
        assert PAPERS["conversation"].mark not in answer.text.lower(), path


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_tool_gives_what_the_oracle_says(world: AccessCorpus, services: Services, tool: str) -> None:
    for name in PEOPLE:
        await probe_of(tool)(world, services, name)
