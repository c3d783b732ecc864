"""Tests for provenance: every document in a prompt is recorded, or the record is marked as incomplete."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, get_args

import pytest

from shared.answering.inline import RunChildren, run_to_end
from shared.answering.provenance import provenance_of, stored_provenance
from shared.answering.run_end import project_run
from shared.answering.runs import begin_run
from shared.answering.services import AnsweringServices
from shared.answering.subagent_models import SubagentEnd, SubagentStart, SubagentState
from shared.evidence.repairs import RepairedQuotations
from shared.platform.language_models.models import Message, ModelTurn, Prompt, ToolCall
from shared.platform.names import RUN_LOG
from shared.platform.settings import Settings
from shared.retrieval.models import DocumentRecord, Hit
from shared.runs.agents import AgentDefinition
from shared.runs.events import ValueLine
from shared.runs.evidence import Evidence, MissingDocument, StoredPlan, TableCard
from shared.runs.journal import read_journal
from shared.runs.models import ChatRequest, ClarificationOption, RunView
from shared.runs.plan import QuestionPlan
from shared.runs.provenance import UNKNOWN, Provenance, UsedDocument
from shared.runs.run_files import RunFiles, provenance_path
from shared.tools.base import Parameters, Tool, ToolResult
from shared.tools.registry import TOOLS
from shared.wiring import Services
from tests.fakes.models import Reply, ScriptedChatModel
from tests.fakes.services import fake_settings
from tests.queued_work import remember_queued
from tests.unit.subagents.lines import keep_state
from tests.world import ANNA, UPLOADED, World, ask, plan

MANUAL = UsedDocument(doc_id="manual", version=0)
DATABASE = "db-sales"
CITED = 'It runs at 15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'


def calling(*calls: tuple[str, str], first: QuestionPlan | None = None) -> ScriptedChatModel:
    """Return a model that makes one tool call per turn and then answers."""
    turns: list[Reply] = [
        ModelTurn(text="", tool_calls=(ToolCall(call_id=f"c{place}", name=name, arguments=arguments),))
        for place, (name, arguments) in enumerate(calls)
    ]
    replies = iter(turns)

    def answer(prompt: Prompt) -> Reply:
        if prompt.name == "plan":
            return first or plan()
        if prompt.name == "repair":
            return RepairedQuotations(quotations=())
        return next(replies, ModelTurn(text=CITED))

    return ScriptedChatModel(answer=answer)


async def make_world(model: ScriptedChatModel | None = None, settings: Settings | None = None) -> World:
    world = World(model or calling(), settings=settings or fake_settings(subagents_enabled=False))
    await world.add("manual", "The pump runs at 15 bar.", title="Pump manual")
    return world


async def provenance(services: Services, view: RunView) -> Provenance:
    return await stored_provenance(view.run_id, services.blobs)


def ids(record: Provenance) -> list[str]:
    return [document.doc_id for document in record.documents]


async def ask_for_provenance(world: World, **body: Any) -> Provenance:
    view, _ = await world.ask(**body)
    assert view.status == "completed"
    return await provenance(world.services, view)


async def test_the_first_search_is_on_record_with_versions() -> None:
    world = World(calling(), settings=fake_settings(subagents_enabled=False))
    await world.add("manual", "The pump runs at 15 bar.", version=4)
    assert await ask_for_provenance(world) == Provenance(
        documents=(UsedDocument(doc_id="manual", version=4),)
    )


async def test_a_list_of_documents_is_on_record() -> None:
    world = await make_world(calling(first=plan(query_type="LISTING")))
    await world.add("travel", "Trips.")
    assert ids(await ask_for_provenance(world)) == ["manual", "travel"]


async def test_a_list_that_leaves_documents_out_states_a_count() -> None:
    world = await make_world(calling(first=plan(query_type="LISTING")))
    for number in range(60):
        await world.add(f"travel-{number}", "Trips.")
    assert (await ask_for_provenance(world)).obstacles == ("counts",)


ONLY_THE_MANUAL = plan(query_type="DOCUMENT_SUMMARY", document_references=("Pump manual",))
TOOL_CALLS = {
    "rag_semantic_search": '{"query": "trips"}',
    "rag_list_documents": "{}",
    "rag_metadata_search": '{"query": "travel"}',
    "rag_get_document": '{"doc_id": "travel"}',
    "read_pages": '{"doc_id": "travel"}',
}


@pytest.mark.parametrize("tool", TOOL_CALLS)
async def test_what_a_tool_reads_is_on_record(tool: str) -> None:
    world = await make_world(calling((tool, TOOL_CALLS[tool]), first=ONLY_THE_MANUAL))
    await world.add("travel", "Trips by train.", title="Travel policy")
    record = await ask_for_provenance(world)
    assert ids(record) == ["manual", "travel"]
    assert record.obstacles == ()


async def test_a_page_that_does_not_exist_names_its_document() -> None:
    call = ("read_pages", '{"doc_id": "scan", "first": 3}')
    world = await make_world(calling(call, first=ONLY_THE_MANUAL))
    await world.add("scan", page_count=2)
    assert ids(await ask_for_provenance(world)) == ["manual", "scan"]


async def test_documents_that_no_prompt_named_are_not_on_record() -> None:
    world = await make_world(calling(first=ONLY_THE_MANUAL))
    await world.add("travel", "Trips by train.", title="Travel policy")
    assert ids(await ask_for_provenance(world)) == ["manual"]


async def test_similar_names_are_on_record() -> None:
    first = plan(query_type="DOCUMENT_SUMMARY", document_references=("report-2025.pdf",))
    world = await make_world(calling(first=first))
    await world.add("report-2024", "Revenue.", title="Report 2024")
    view, _ = await world.ask()
    assert view.answer is not None
    assert "report-2024.pdf" in view.answer.text
    assert ids(await provenance(world.services, view)) == ["report-2024"]


def test_names_in_a_plan_without_their_documents_are_unknown() -> None:
    option = ClarificationOption(number=1, doc_id="manual", filename="manual.pdf")
    for update in (
        {"options": (option,)},
        {"missing": (MissingDocument(reference="x", nearest=("manual.pdf",)),)},
        {"options": (option,), "named": (UsedDocument(doc_id="travel", version=1),)},
    ):
        assert StoredPlan(plan=plan()).model_copy(update=update).provenance == UNKNOWN
    stored_plan = StoredPlan(plan=plan(), options=(option,), named=(MANUAL,))
    assert stored_plan.provenance == Provenance(documents=(MANUAL,))


def test_tables_are_on_record_and_databases_an_obstacle() -> None:
    card = TableCard(doc_id="prices", version=2, text="{}")
    assert Evidence(tables=(card,)).provenance.documents == (UsedDocument(doc_id="prices", version=2),)
    database = UsedDocument(doc_id=DATABASE, version=0)
    assert Provenance.of(MANUAL, database) == Provenance(documents=(MANUAL,), obstacles=("database",))


def test_every_field_of_the_evidence_is_on_record() -> None:
    hit = Hit(block_id="b", doc_id="hidden", filename="hidden.pdf", version=2)
    values = {
        Hit: hit,
        DocumentRecord: DocumentRecord(
            doc_id="hidden", filename="hidden.pdf", upload_date=UPLOADED, version=2
        ),
        TableCard: TableCard(doc_id="hidden", version=2, text="{}"),
    }
    kinds = {name: get_args(field.annotation)[:1] for name, field in Evidence.model_fields.items()}
    of_documents = {name: kind[0] for name, kind in kinds.items() if kind and kind[0] in values}
    assert len(of_documents) == 7
    for name, kind in of_documents.items():
        evidence = Evidence.model_validate({name: (values[kind],)})
        assert ids(evidence.provenance) == ["hidden"], name


async def test_documents_offered_in_a_clarification_are_on_record() -> None:
    first = plan(query_type="DOCUMENT_SUMMARY", document_references=("report",))
    world = World(calling(first=first), settings=fake_settings(subagents_enabled=False))
    for year in (2023, 2024):
        await world.add(f"report-{year}", f"Revenue of {year}.", title="Report")
    request = await begin_run(ChatRequest(question="Summarise the report."), ANNA, world.services)
    await run_to_end(request.run_id, world.services)
    journal = await read_journal(world.services.run_log, world.services.blobs, request.run_id)
    assert ids(await provenance_of(journal)) == ["report-2023", "report-2024"]


async def test_earlier_turns_are_marked() -> None:
    world = await make_world()
    view, _ = await world.ask()
    assert not (await provenance(world.services, view)).is_follow_up
    later, _ = await world.ask(thread_id=view.thread_id)
    assert (await provenance(world.services, later)).is_follow_up


async def test_remembered_answers_are_named() -> None:
    world = await make_world(calling(("recall_memory", '{"query": "pressure"}')))
    first, _ = await world.ask(question="At what pressure?")
    await remember_queued(world.services)
    services = replace(world.services, chat_model=calling(("recall_memory", '{"query": "pressure"}')))
    view, _ = await ask(services, "What did I ask?")
    assert (await provenance(services, view)).run_ids == (first.run_id,)


def agent_with(*tools: str) -> AgentDefinition:
    fields = {"name": "helper", "description": "Helps.", "instructions": "Help.", "access": ["*"]}
    return AgentDefinition.model_validate({**fields, "tools": tools, "proof": "optional"})


async def obstacles_of(services: Services, *tools: str) -> tuple[str, ...]:
    """Let an agent with these tools answer, and return why its answer can't be shared."""
    request = await begin_run(ChatRequest(question="How many?"), ANNA, services)
    narrowed = request.model_copy(update={"agent": agent_with(*tools)})
    await RunFiles(services.blobs, request.run_id).put_request(narrowed)
    await run_to_end(request.run_id, services)
    return (await stored_provenance(request.run_id, services.blobs)).obstacles


async def test_facets_state_counts() -> None:
    world = await make_world(calling(("rag_facets", "{}")))
    assert await obstacles_of(world.services, "rag_facets") == ("counts",)


async def test_workspace_files_are_an_obstacle_and_python_alone_is_none() -> None:
    settings = fake_settings(agent_tools="python,file_read", subagents_enabled=False)
    for call, expected in (
        (("file_read", '{"path": "notes.md"}'), ("workspace",)),
        (("python", '{"code": "1", "files": ["notes.md"]}'), ("workspace",)),
        (("python", '{"code": "1 + 1"}'), ()),
    ):
        world = await make_world(calling(call), settings)
        assert await obstacles_of(world.services, "python", "file_read") == expected


class Untold(Tool):
    """A third-party tool that may return anything."""

    name = "look_up"
    description = "Look something up."
    parameters = Parameters
    documentation = ""
    example = "{}"

    async def _run(self, arguments: Parameters) -> ToolResult:
        return {"result": "From who knows where."}


async def test_a_tool_that_does_not_report_its_documents_is_an_obstacle() -> None:
    world = await make_world(calling(("look_up", "{}")))
    services = world.services.using(own_tools={"look_up": Untold()})
    assert await obstacles_of(services, "look_up") == ("tool",)


def test_tools_that_read_documents_report_them() -> None:
    untold = {name for name, tool in TOOLS.items() if not tool.reports_documents}
    assert untold == {"file_read", "github"}


def leaving(*states: SubagentState) -> RunChildren:
    """Return sub-agents that each store all of these states."""

    async def run(
        starts: Sequence[SubagentStart], until: datetime, services: AnsweringServices
    ) -> tuple[SubagentEnd, ...]:
        for start in starts:
            for state in states:
                mine = state.model_copy(update={"child_id": start.child_id})
                await keep_state(services, start.run_id, start.step, mine, start.index)
        return tuple(SubagentEnd(child_id=start.child_id, status="done") for start in starts)

    return run


async def test_documents_of_sub_agents_are_on_record_whether_or_not_they_count() -> None:
    world = await make_world(settings=fake_settings(max_retrieval_attempts=1))
    first = SubagentState(
        child_id="c",
        profile="doc_reader",
        provenance=Provenance(documents=(UsedDocument(doc_id="dropped", version=3),)),
    )
    last = first.model_copy(
        update={"provenance": Provenance(documents=(UsedDocument(doc_id="kept", version=1),))}
    )
    view, _ = await ask(world.services, children=leaving(first, last), deep=True)
    assert ids(await provenance(world.services, view)) == ["dropped", "kept", "manual"]


async def test_a_sub_agent_without_a_record_makes_it_incomplete() -> None:
    world = await make_world(settings=fake_settings(max_retrieval_attempts=1))
    state = SubagentState(child_id="c", profile="doc_reader", messages=(Message(role="user", text="x"),))
    view, _ = await ask(world.services, children=leaving(state), deep=True)
    assert (await provenance(world.services, view)).obstacles == ("unknown",)


async def test_an_unknown_part_of_the_journal_makes_it_incomplete() -> None:
    world = await make_world()
    view, _ = await world.ask()
    journal = await read_journal(world.services.run_log, world.services.blobs, view.run_id)
    journal.events.append(ValueLine(of=2, part="from-a-newer-version", inline={}))
    assert await provenance_of(journal) == UNKNOWN


async def test_a_lost_record_is_incomplete_until_it_is_projected_again() -> None:
    world = await make_world()
    view, _ = await world.ask()
    before = await provenance(world.services, view)
    await world.services.blobs.delete(RUN_LOG, provenance_path(view.run_id))
    assert await provenance(world.services, view) == UNKNOWN
    await project_run(view.run_id, world.services)
    assert await provenance(world.services, view) == before


@pytest.mark.parametrize("tool", [*TOOL_CALLS, "none"])
async def test_every_document_in_a_prompt_is_on_record(tool: str) -> None:
    calls = [] if tool == "none" else [(tool, TOOL_CALLS[tool])]
    model = calling(*calls)
    world = await make_world(model)
    for name in ("travel", "canteen", "parking"):
        await world.add(name, f"Rules for {name}.", title=f"{name} rules")
    record = await ask_for_provenance(world)
    texts = "\n".join(
        (
            *(message.text for messages in model.conversations for message in messages),
            *(prompt.user for prompt in model.prompts),
        )
    )
    prompt_documents = {name for name in ("manual", "travel", "canteen", "parking") if f"{name}.pdf" in texts}
    assert prompt_documents
    assert prompt_documents <= set(ids(record))
