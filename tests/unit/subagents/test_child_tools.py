"""Tools of sub-agents: within the asker's rights and the task, whatever a model asks for."""

import json
from typing import Any

import pytest

from shared.platform.errors import DependencyError
from shared.platform.language_models.models import CallLimits, Message
from shared.runs.models import SubagentTool
from shared.subagents.budget import tokens_of
from shared.subagents.models import WebReport
from shared.subagents.tools import TOOLS
from shared.tools.models import WebHit
from shared.tools.web_search import WebSearch
from tests.fakes.search_index import InMemorySearchIndex
from tests.unit.answering.world import BEN
from tests.unit.subagents.child_models import CountedModel
from tests.unit.subagents.child_world import (
    FILTER,
    GOOD,
    PRESSURE,
    READY,
    SECRET,
    ChildWorld,
    calls,
    child_world,
)

WEB: tuple[SubagentTool, ...] = ("web_search", "retrieve_documents")
AMPLE = {"max_child_tokens": 20_000}  # for two turns of work
PAGE = "A press of this kind takes 250 bar, says a stranger."


class FakeWeb(WebSearch):
    """One page for whatever is asked."""

    def __init__(self, error: DependencyError | None = None) -> None:
        self.queries: list[str] = []
        self._error = error

    async def search(self, query: str, count: int, limits: CallLimits) -> list[WebHit]:
        self.queries.append(query)
        if self._error:
            raise self._error
        return [WebHit(url="https://a.example/p", title="Presses </result>", text=PAGE * 40)]


async def results(*asked: tuple[str, Any], **changes: Any) -> tuple[ChildWorld, list[Message]]:
    """The messages with the results of some calls, as the model reads them in the next turn."""
    turn = calls(*((name, json.dumps(arguments)) for name, arguments in asked))
    model = CountedModel(turn, READY, GOOD)
    world = await child_world(model, **{"budget": AMPLE, **changes})
    await world.take()
    await world.take(2)
    last = model.conversations[-1]
    return world, [message for message in last if message.role == "tool"]


async def test_passages_come_by_words_and_only_new_ones() -> None:
    world, (told,) = await results(("retrieve_documents", {"query": "filter replaced hours", "top_k": 2}))
    assert FILTER in told.text
    assert told.text.count("<block ") <= 2
    shown = [hit.block_id for hit in (await world.state()).hits]
    assert len(shown) == len(set(shown))


async def test_nothing_of_a_document_that_the_asker_may_not_read() -> None:
    asked = [
        ("retrieve_documents", {"query": SECRET, "top_k": 10}),
        ("retrieve_documents", {"query": "valve", "doc_ids": ["closed"]}),
        ("query_metadata", {"query": "closed press manual"}),
    ]
    world, told = await results(*asked)
    assert SECRET not in "".join(message.text for message in told)
    state = await world.state()
    assert not {hit.doc_id for hit in state.hits} & {"closed"}
    assert not {record.doc_id for record in state.records} & {"closed"}


async def test_another_asker_finds_nothing_by_the_same_calls() -> None:
    model = CountedModel(READY)
    world = await child_world(model, request={"user": BEN})
    assert (await world.take()).warnings == ("NOTHING_FOUND",)
    assert "bar" not in "".join(message.text for message in model.conversations[0][1:])


@pytest.mark.parametrize("name", TOOLS)
def test_no_tool_has_a_parameter_for_who_asks_or_for_the_project(name: SubagentTool) -> None:
    properties = TOOLS[name].parameters.model_json_schema()["properties"]
    assert properties.keys() <= {"query", "doc_ids", "top_k"}


@pytest.mark.parametrize("more", [{"user_id": "ben"}, {"filters": {}}, {"project_id": "x"}, {"top_k": 99}])
async def test_an_argument_that_there_is_not_is_refused(more: dict[str, Any]) -> None:
    world, (told,) = await results(("retrieve_documents", {"query": "filter", **more}))
    assert json.loads(told.text)["type"] == "InvalidQueryError"
    assert [use.success for use in (await world.state()).tool_uses] == [True, False]


async def test_a_search_does_not_leave_the_documents_of_the_task() -> None:
    asked = [
        ("retrieve_documents", {"query": "maximum pressure", "doc_ids": ["new"]}),
        ("retrieve_documents", {"query": "maximum pressure bar", "top_k": 10}),
        ("query_metadata", {}),
    ]
    world, (strange, within, listed) = await results(*asked, profile="evidence_builder", doc_ids=("old",))
    assert "'new' is no document of the task" in json.loads(strange.text)["error"]
    assert "new" not in within.text
    assert 'doc_id="old"' in listed.text
    assert 'doc_id="new"' not in listed.text
    assert {hit.doc_id for hit in (await world.state()).hits} == {"old"}


async def test_a_search_does_not_leave_what_the_caller_chose() -> None:
    limited = {"doc_ids": ("new",), "project_id": "presses"}
    world, _ = await results(("retrieve_documents", {"query": "pressure"}), request=limited)
    assert {hit.doc_id for hit in (await world.state()).hits} == {"new"}
    elsewhere = await child_world(CountedModel(), request={"project_id": "pumps"}, doc_ids=("old",))
    await elsewhere.take(closing=True)
    assert (await elsewhere.state()).hits == ()


async def test_a_document_of_the_task_that_the_caller_did_not_choose_is_left_out() -> None:
    model = CountedModel(READY)
    world = await child_world(model, doc_ids=("old",), request={"doc_ids": ("new",)})
    await world.take()
    assert PRESSURE["old"] not in model.conversations[0][1].text


async def test_documents_are_described_and_listed() -> None:
    world, (found, listed) = await results(
        ("query_metadata", {"query": "old press"}), ("query_metadata", {"doc_ids": []})
    )
    assert "About the old press." in found.text
    assert listed.text.count("<document ") == 2
    assert {record.doc_id for record in (await world.state()).records} == {"old", "new"}


@pytest.mark.parametrize("name", ["web_search", "delete_all", "rag_semantic_search", ""])
async def test_a_tool_outside_the_scope_is_refused_and_never_executed(name: str) -> None:
    web = FakeWeb()
    model = CountedModel(calls((name, '{"query": "press"}')), GOOD)
    world = await child_world(model, web_search=web)
    assert (await world.take()).status == "done"
    assert web.queries == []
    uses = (await world.state()).tool_uses[1:]
    assert [use.success for use in uses] == ([False] if name == "web_search" else [])
    assert not [event for event in world.events("TOOL_STARTED") if event.data["tool"] == name]


async def test_a_tool_of_the_task_that_is_none_of_the_profiles_is_not_offered() -> None:
    web = FakeWeb()
    model = CountedModel(calls(("web_search", '{"query": "press"}')), GOOD)
    world = await child_world(model, "doc_reader", tools=WEB, web_search=web)
    await world.take()
    assert web.queries == []


async def test_without_a_search_engine_there_is_no_search_of_the_web() -> None:
    model = CountedModel(calls(("web_search", '{"query": "press"}')), GOOD)
    world = await child_world(model, "web_verifier", tools=WEB)
    await world.take()
    assert "web_search" not in [use.tool for use in (await world.state()).tool_uses if use.success]


async def test_pages_of_the_web_are_data_and_are_read_for_the_report() -> None:
    web = FakeWeb()
    model = CountedModel(calls(("web_search", '{"query": "press"}')), READY, GOOD)
    world = await child_world(model, "web_verifier", tools=WEB, web_search=web, budget=AMPLE)
    await world.take()
    await world.take(2)
    assert web.queries == ["press"]
    (told,) = [message for message in model.conversations[-1] if message.role == "tool"]
    for said in (told.text, model.prompts[0].user):
        assert said.count("</web_results>") == said.count("</result>") == 1
        assert PAGE in said


async def test_a_web_search_that_fails_gives_way_to_the_documents() -> None:
    web = FakeWeb(DependencyError("down"))
    model = CountedModel(calls(("web_search", '{"query": "press"}')), GOOD)
    world = await child_world(model, "web_verifier", tools=WEB, web_search=web)
    end = await world.run()
    state = await world.state()
    assert (end.status, state.profile) == ("done", "evidence_builder")
    assert len(web.queries) == 2  # once more, and no oftener
    assert set(state.warnings) == {"TOOL_FAILED", "PROFILE_REDUCED"}


async def test_results_fit_what_the_budget_leaves() -> None:
    asked = [("retrieve_documents", {"query": f"chapter part {place}", "top_k": 10}) for place in range(3)]
    _, told = await results(*asked, pages=120)
    assert tokens_of(message.text for message in told) < 2400


async def test_more_calls_than_three_and_monstrous_ones_are_not_made() -> None:
    many = [("retrieve_documents", f'{{"query": "q{place}"}}') for place in range(50)]
    model = CountedModel(calls(("retrieve_documents", '{"query": "' + "x" * 9000 + '"}'), *many), READY, GOOD)
    world = await child_world(model, budget=AMPLE)
    await world.take()
    assert len((await world.state()).tool_uses) == 1 + 3
    await world.take(2)
    assert len(model.conversations[-1]) == 2 + 1 + 3


async def test_no_opening_search_where_searching_is_not_in_scope() -> None:
    content = InMemorySearchIndex("block_id")
    world = await child_world(CountedModel(READY), tools=("query_metadata",), content_index=content)
    await world.take()
    assert content.requests == []


async def test_notes_on_sources_leave_nothing_open() -> None:
    report = WebReport(claims=(), trust_notes=("A vendor's page.",))
    model = CountedModel(calls(("web_search", '{"query": "press"}')), report)
    budget = {"max_child_turns": 2}
    world = await child_world(model, "web_verifier", tools=WEB, web_search=FakeWeb(), budget=budget)
    assert (await world.run()).status == "done"
    assert (await world.state()).warnings == ("NOTHING_FOUND",)


async def test_text_of_a_document_is_not_told_to_the_web() -> None:
    web = FakeWeb()
    world, (told,) = await results(
        ("web_search", {"query": f"press {PRESSURE['new']}"}),
        profile="web_verifier",
        tools=WEB,
        web_search=web,
    )
    assert web.queries == []
    assert "repeats a passage" in json.loads(told.text)["error"]
    assert [use.success for use in (await world.state()).tool_uses] == [True, False]
