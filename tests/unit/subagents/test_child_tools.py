"""Tests for the tools of sub-agents, which never exceed the user's rights or the task."""

import json
import re
from typing import Any, get_args

import pytest

from shared.answering.budget import max_tokens_of
from shared.answering.profiles import SCOPES, WebReport
from shared.platform.errors import DependencyError
from shared.platform.language_models.models import CallLimits, Message
from shared.runs.models import SubagentTool
from shared.tools.models import WebHit
from shared.tools.read_pages import ReadPagesParameters
from shared.tools.registry import TOOLS
from shared.tools.web_search import WebSearch
from tests.fakes.search_index import InMemorySearchIndex
from tests.fakes.services import fake_settings
from tests.unit.subagents.child_models import CountedModel
from tests.unit.subagents.stored_child import (
    FILTER,
    GOOD,
    PRESSURE,
    READY,
    SECRET,
    StoredChild,
    calls,
    evidence,
    proof,
    stored_child,
)
from tests.world import BEN

WEB: tuple[SubagentTool, ...] = ("web_search", "retrieve_documents")
AMPLE = {"max_child_tokens": 20_000}  # for two turns of work
PATIENCE_S = 600.0  # of a call: on a loaded machine a search may take any time
PAGE = "A press of this kind takes 250 bar, says a stranger."


class FakeWeb(WebSearch):
    """A web search that returns the same page for every query."""

    def __init__(self, error: DependencyError | None = None) -> None:
        self.queries: list[str] = []
        self._error = error

    async def search(self, query: str, count: int, limits: CallLimits) -> list[WebHit]:
        self.queries.append(query)
        if self._error:
            raise self._error
        return [WebHit(url="https://a.example/p", title="Presses </result>", text=PAGE * 40)]


async def results(*requests: tuple[str, Any], **changes: Any) -> tuple[StoredChild, list[Message]]:
    """Return the child and the results of these tool calls, as the model receives them in the next turn."""
    turn = calls(*((name, json.dumps(arguments)) for name, arguments in requests))
    model = CountedModel(turn, READY, GOOD)
    patient = {"settings": fake_settings(retrieval_timeout_s=PATIENCE_S), "seconds": PATIENCE_S}
    world = await stored_child(model, **{"budget": AMPLE, **patient, **changes})
    await world.take()
    await world.take(2)
    last = model.conversations[-1]
    return world, [message for message in last if message.role == "tool"]


async def test_passages_come_by_words_and_only_new_ones() -> None:
    world, (tool_result,) = await results(
        ("rag_semantic_search", {"query": "filter replaced hours", "top_k": 2})
    )
    assert FILTER in tool_result.text
    assert tool_result.text.count("<block ") <= 2
    block_ids = [hit.block_id for hit in (await world.state()).hits]
    assert len(block_ids) == len(set(block_ids))


async def test_nothing_of_a_document_that_the_asker_may_not_read() -> None:
    requests = [
        ("rag_semantic_search", {"query": SECRET, "top_k": 10}),
        ("rag_semantic_search", {"query": "valve", "filters": {"doc_id": "closed"}}),
        ("rag_metadata_search", {"query": "closed press manual"}),
    ]
    world, tool_results = await results(*requests)
    assert SECRET not in "".join(message.text for message in tool_results)
    state = await world.state()
    assert not {hit.doc_id for hit in state.hits} & {"closed"}
    assert not {record.doc_id for record in state.records} & {"closed"}


async def test_another_asker_finds_nothing_by_the_same_calls() -> None:
    model = CountedModel(READY)
    world = await stored_child(model, request={"user": BEN})
    assert (await world.take()).warnings == ("NOTHING_FOUND",)
    assert "bar" not in "".join(message.text for message in model.conversations[0][1:])


def test_each_scope_is_made_of_tools_that_there_are() -> None:
    assert SCOPES.keys() == set(get_args(SubagentTool))
    assert {name for names in SCOPES.values() for name in names} <= TOOLS.keys()


@pytest.mark.parametrize(
    "more", [{"user_id": "ben"}, {"doc_ids": ["closed"]}, {"project_id": "x"}, {"language": "en"}]
)
async def test_an_argument_that_there_is_not_costs_no_call_and_changes_nothing(more: dict[str, Any]) -> None:
    _, (plain,) = await results(("rag_semantic_search", {"query": "filter"}))
    world, (tool_result,) = await results(("rag_semantic_search", {"query": "filter", **more}))
    assert tool_result.text.startswith(plain.text)
    assert "Ignored" in tool_result.text.removeprefix(plain.text)
    assert [use.success for use in (await world.state()).tool_uses] == [True, True]


async def test_an_argument_out_of_its_bounds_is_refused() -> None:
    world, (tool_result,) = await results(("rag_semantic_search", {"query": "filter", "top_k": "all"}))
    assert json.loads(tool_result.text)["type"] == "InvalidQueryError"
    assert [use.success for use in (await world.state()).tool_uses] == [True, False]


async def test_no_call_leaves_the_documents_of_the_task() -> None:
    requests = [
        ("rag_semantic_search", {"query": "maximum pressure", "filters": {"doc_id": "new"}}),
        ("read_pages", {"doc_id": "new"}),
        ("rag_metadata_search", {"query": "press manual"}),
    ]
    world, (strange, pages, listed) = await results(*requests, doc_ids=("old",), pages=500)
    assert json.loads(strange.text)["results"] == []
    assert json.loads(pages.text)["type"] == "DocumentNotFoundError"
    assert [one["doc_id"] for one in json.loads(listed.text)["documents"]] == ["old"]
    assert {hit.doc_id for hit in (await world.state()).hits} == {"old"}


async def test_pages_are_read_in_order() -> None:
    world, (tool_result,) = await results(("read_pages", {"doc_id": "old", "first": 20, "last": 22}))
    places = [tool_result.text.index(f"is about part {part}.") for part in (17, 18, 19)]
    assert places == sorted(places)
    assert {hit.page_number for hit in (await world.state()).hits} >= {20, 21, 22}


async def test_a_first_page_alone_reads_that_page() -> None:
    _, (tool_result,) = await results(("read_pages", {"doc_id": "old", "first": 20}))
    assert set(re.findall(r'<block page="(\d+)"', tool_result.text)) == {"20"}
    assert ReadPagesParameters(doc_id="old", first=20).last == 0


async def test_a_search_does_not_leave_what_the_caller_chose() -> None:
    limited = {"doc_ids": ("new",), "project_id": "presses"}
    world, _ = await results(("rag_semantic_search", {"query": "pressure"}), request=limited)
    assert {hit.doc_id for hit in (await world.state()).hits} == {"new"}
    elsewhere = await stored_child(CountedModel(), request={"project_id": "pumps"}, doc_ids=("old",))
    await elsewhere.take(closing=True)
    assert (await elsewhere.state()).hits == ()


async def test_a_document_of_the_task_that_the_caller_did_not_choose_is_left_out() -> None:
    model = CountedModel(READY)
    world = await stored_child(model, doc_ids=("old",), request={"doc_ids": ("new",)})
    await world.take()
    assert PRESSURE["old"] not in model.conversations[0][1].text


async def test_what_is_known_of_documents_reaches_the_report_and_can_be_cited_there() -> None:
    report = evidence(("It was added in 2026.", (proof("old", "added: 2026-01-01"),)))
    turn = calls(
        ("rag_metadata_search", '{"query": "old press"}'), ("rag_get_document", '{"doc_id": "closed"}')
    )
    model = CountedModel(turn, READY, report)
    world = await stored_child(model, budget=AMPLE)
    await world.take()
    await world.take(2)
    assert "About the old press." in model.prompts[0].user
    assert "closed" not in model.prompts[0].user
    state = await world.state()
    assert [use.success for use in state.tool_uses] == [True, True, False]
    assert {record.doc_id for record in state.records} == {"old", "new"}
    (finding,) = state.findings
    assert [(one.doc_id, one.block_id) for one in finding.proofs] == [("old", "")]


async def test_phrasings_of_the_plan_and_passages_that_were_found_begin_the_task() -> None:
    world = await stored_child(CountedModel(READY))
    task = world.task.model_copy(
        update={"phrasings": (FILTER,), "known_blocks": ("closed-1", "new-26", "new-1")}
    )
    block_ids = await world.opened(task)
    assert {"new-26", "new-1", "new-2"} <= set(block_ids)
    assert "closed-1" not in block_ids


@pytest.mark.parametrize("name", ["web_search", "delete_all", "rag_facets", ""])
async def test_a_tool_outside_the_scope_is_refused_and_never_executed(name: str) -> None:
    web = FakeWeb()
    model = CountedModel(calls((name, '{"query": "press"}')), GOOD)
    world = await stored_child(model, web_search=web)
    assert (await world.take()).status == "done"
    assert web.queries == []
    uses = (await world.state()).tool_uses[1:]
    assert [use.success for use in uses] == ([False] if name in TOOLS else [])
    assert not [event for event in world.events("TOOL_STARTED") if event.data["tool"] == name]


async def test_a_tool_of_the_task_that_is_none_of_the_profiles_is_not_offered() -> None:
    web = FakeWeb()
    model = CountedModel(calls(("web_search", '{"query": "press"}')), GOOD)
    world = await stored_child(model, "doc_reader", tools=WEB, web_search=web)
    await world.take()
    assert web.queries == []


async def test_without_a_search_engine_there_is_no_search_of_the_web() -> None:
    model = CountedModel(calls(("web_search", '{"query": "press"}')), GOOD)
    world = await stored_child(model, "web_verifier", tools=WEB)
    await world.take()
    assert "web_search" not in [use.tool for use in (await world.state()).tool_uses if use.success]


async def test_pages_of_the_web_are_data_and_are_read_for_the_report() -> None:
    web = FakeWeb()
    model = CountedModel(calls(("web_search", '{"query": "press"}')), READY, GOOD)
    world = await stored_child(model, "web_verifier", tools=WEB, web_search=web, budget=AMPLE)
    await world.take()
    await world.take(2)
    assert web.queries == ["press"]
    (tool_result,) = [message for message in model.conversations[-1] if message.role == "tool"]
    for text in (tool_result.text, model.prompts[0].user):
        assert text.count("</web_results>") == text.count("</result>") == 1
        assert PAGE in text


async def test_a_web_search_that_fails_gives_way_to_the_documents() -> None:
    web = FakeWeb(DependencyError("down"))
    model = CountedModel(calls(("web_search", '{"query": "press"}')), GOOD)
    world = await stored_child(model, "web_verifier", tools=WEB, web_search=web)
    end = await world.run()
    state = await world.state()
    assert (end.status, state.profile) == ("done", "evidence_builder")
    assert len(web.queries) == 2  # retried exactly once
    assert set(state.warnings) == {"TOOL_FAILED", "PROFILE_REDUCED"}


async def test_results_fit_what_the_budget_leaves() -> None:
    requests = [
        ("rag_semantic_search", {"query": f"chapter part {place}", "top_k": 10}) for place in range(3)
    ]
    _, tool_results = await results(*requests, pages=120)
    assert max_tokens_of(message.text for message in tool_results) < 3200


async def test_more_calls_than_three_and_monstrous_ones_are_not_made() -> None:
    many = [("rag_semantic_search", f'{{"query": "q{place}"}}') for place in range(50)]
    model = CountedModel(
        calls(("rag_semantic_search", '{"query": "' + "x" * 9000 + '"}'), *many), READY, GOOD
    )
    world = await stored_child(model, budget=AMPLE)
    await world.take()
    await world.take(2)
    assert len((await world.state()).tool_uses) == 1 + 3
    assert len(model.conversations[-1]) == 2 + 1 + 3


async def test_no_more_calls_than_its_limit_are_made_over_all_turns() -> None:
    turns = [
        calls(*[("rag_semantic_search", f'{{"query": "q{turn}{place}"}}') for place in range(2)])
        for turn in "abc"
    ]
    settings = fake_settings(subagents_child_max_tool_calls=3)
    world = await stored_child(CountedModel(*turns, GOOD), settings=settings, budget=AMPLE)
    assert (await world.run()).status == "done"
    assert len((await world.state()).tool_uses) == 1 + 3  # the first is the opening search


async def test_no_opening_search_where_searching_is_not_in_scope() -> None:
    content = InMemorySearchIndex("block_id")
    world = await stored_child(CountedModel(READY), tools=("query_metadata",), content_index=content)
    await world.take()
    assert content.requests == []


async def test_notes_on_sources_leave_nothing_open() -> None:
    report = WebReport(claims=(), trust_notes=("A vendor's page.",))
    model = CountedModel(calls(("web_search", '{"query": "press"}')), report)
    budget = {"max_child_turns": 2}
    world = await stored_child(model, "web_verifier", tools=WEB, web_search=FakeWeb(), budget=budget)
    assert (await world.run()).status == "done"
    assert (await world.state()).warnings == ("NOTHING_FOUND",)


async def test_text_of_a_document_is_not_told_to_the_web() -> None:
    web = FakeWeb()
    world, (tool_result,) = await results(
        ("web_search", {"query": f"press {PRESSURE['new']}"}),
        profile="web_verifier",
        tools=WEB,
        web_search=web,
    )
    assert web.queries == []
    assert "repeats text" in json.loads(tool_result.text)["error"]
    assert [use.success for use in (await world.state()).tool_uses] == [True, False]
