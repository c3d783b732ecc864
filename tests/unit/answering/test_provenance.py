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


async def world(model: ScriptedChatModel | None = None, settings: Settings | None = None) -> World:
    made = World(model or calling(), settings=settings or fake_settings(subagents_enabled=False))
    await made.add("manual", "The pump runs at 15 bar.", title="Pump manual")
    return made


async def provenance(services: Services, view: RunView) -> Provenance:
    return await stored_provenance(view.run_id, services.blobs)


def ids(found: Provenance) -> list[str]:
    return [document.doc_id for document in found.documents]


async def asked(made: World, **body: Any) -> Provenance:
    view, _ = await made.ask(**body)
    assert view.status == "completed"
    return await provenance(made.services, view)


async def test_the_first_search_is_on_record_with_versions() -> None:
    made = World(calling(), settings=fake_settings(subagents_enabled=False))
    await made.add("manual", "The pump runs at 15 bar.", version=4)
    assert await asked(made) == Provenance(documents=(UsedDocument(doc_id="manual", version=4),))


async def test_a_list_of_documents_is_on_record() -> None:
    made = await world(calling(first=plan(query_type="LISTING")))
    await made.add("travel", "Trips.")
    assert ids(await asked(made)) == ["manual", "travel"]


async def test_a_list_that_leaves_documents_out_states_a_count() -> None:
    made = await world(calling(first=plan(query_type="LISTING")))
    for number in range(60):
        await made.add(f"travel-{number}", "Trips.")
    assert (await asked(made)).obstacles == ("counts",)


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
    made = await world(calling((tool, TOOL_CALLS[tool]), first=ONLY_THE_MANUAL))
    await made.add("travel", "Trips by train.", title="Travel policy")
    found = await asked(made)
    assert ids(found) == ["manual", "travel"]
    assert found.obstacles == ()


async def test_a_page_that_does_not_exist_names_its_document() -> None:
    call = ("read_pages", '{"doc_id": "scan", "first": 3}')
    made = await world(calling(call, first=ONLY_THE_MANUAL))
    await made.add("scan", page_count=2)
    assert ids(await asked(made)) == ["manual", "scan"]


async def test_documents_that_no_prompt_named_are_not_on_record() -> None:
    made = await world(calling(first=ONLY_THE_MANUAL))
    await made.add("travel", "Trips by train.", title="Travel policy")
    assert ids(await asked(made)) == ["manual"]


async def test_similar_names_are_on_record() -> None:
    first = plan(query_type="DOCUMENT_SUMMARY", document_references=("report-2025.pdf",))
    made = await world(calling(first=first))
    await made.add("report-2024", "Revenue.", title="Report 2024")
    view, _ = await made.ask()
    assert view.answer is not None
    assert "report-2024.pdf" in view.answer.text
    assert ids(await provenance(made.services, view)) == ["report-2024"]


def test_names_in_a_plan_without_their_documents_are_unknown() -> None:
    option = ClarificationOption(number=1, doc_id="manual", filename="manual.pdf")
    for update in (
        {"options": (option,)},
        {"missing": (MissingDocument(reference="x", nearest=("manual.pdf",)),)},
        {"options": (option,), "named": (UsedDocument(doc_id="travel", version=1),)},
    ):
        assert StoredPlan(plan=plan()).model_copy(update=update).provenance == UNKNOWN
    named = StoredPlan(plan=plan(), options=(option,), named=(MANUAL,))
    assert named.provenance == Provenance(documents=(MANUAL,))


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
    made = World(calling(first=first), settings=fake_settings(subagents_enabled=False))
    for year in (2023, 2024):
        await made.add(f"report-{year}", f"Revenue of {year}.", title="Report")
    request = await begin_run(ChatRequest(question="Summarise the report."), ANNA, made.services)
    await run_to_end(request.run_id, made.services)
    journal = await read_journal(made.services.run_log, made.services.blobs, request.run_id)
    assert ids(await provenance_of(journal)) == ["report-2023", "report-2024"]


async def test_earlier_turns_are_marked() -> None:
    made = await world()
    view, _ = await made.ask()
    assert not (await provenance(made.services, view)).is_follow_up
    later, _ = await made.ask(thread_id=view.thread_id)
    assert (await provenance(made.services, later)).is_follow_up


async def test_remembered_answers_are_named() -> None:
    made = await world(calling(("recall_memory", '{"query": "pressure"}')))
    first, _ = await made.ask(question="At what pressure?")
    await remember_queued(made.services)
    services = replace(made.services, chat_model=calling(("recall_memory", '{"query": "pressure"}')))
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
    made = await world(calling(("rag_facets", "{}")))
    assert await obstacles_of(made.services, "rag_facets") == ("counts",)


async def test_workspace_files_are_an_obstacle_and_python_alone_is_none() -> None:
    settings = fake_settings(agent_tools="python,file_read", subagents_enabled=False)
    for call, expected in (
        (("file_read", '{"path": "notes.md"}'), ("workspace",)),
        (("python", '{"code": "1", "files": ["notes.md"]}'), ("workspace",)),
        (("python", '{"code": "1 + 1"}'), ()),
    ):
        made = await world(calling(call), settings)
        assert await obstacles_of(made.services, "python", "file_read") == expected


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
    made = await world(calling(("look_up", "{}")))
    services = made.services.using(own_tools={"look_up": Untold()})
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
    made = await world(settings=fake_settings(max_retrieval_attempts=1))
    first = SubagentState(
        child_id="c",
        profile="doc_reader",
        provenance=Provenance(documents=(UsedDocument(doc_id="dropped", version=3),)),
    )
    last = first.model_copy(
        update={"provenance": Provenance(documents=(UsedDocument(doc_id="kept", version=1),))}
    )
    view, _ = await ask(made.services, children=leaving(first, last), deep=True)
    assert ids(await provenance(made.services, view)) == ["dropped", "kept", "manual"]


async def test_a_sub_agent_without_a_record_makes_it_incomplete() -> None:
    made = await world(settings=fake_settings(max_retrieval_attempts=1))
    state = SubagentState(child_id="c", profile="doc_reader", messages=(Message(role="user", text="x"),))
    view, _ = await ask(made.services, children=leaving(state), deep=True)
    assert (await provenance(made.services, view)).obstacles == ("unknown",)


async def test_an_unknown_part_of_the_journal_makes_it_incomplete() -> None:
    made = await world()
    view, _ = await made.ask()
    journal = await read_journal(made.services.run_log, made.services.blobs, view.run_id)
    journal.events.append(ValueLine(of=2, part="from-a-newer-version", inline={}))
    assert await provenance_of(journal) == UNKNOWN


async def test_a_lost_record_is_incomplete_until_it_is_projected_again() -> None:
    made = await world()
    view, _ = await made.ask()
    before = await provenance(made.services, view)
    await made.services.blobs.delete(RUN_LOG, provenance_path(view.run_id))
    assert await provenance(made.services, view) == UNKNOWN
    await project_run(view.run_id, made.services)
    assert await provenance(made.services, view) == before


@pytest.mark.parametrize("tool", [*TOOL_CALLS, "none"])
async def test_every_document_in_a_prompt_is_on_record(tool: str) -> None:
    calls = [] if tool == "none" else [(tool, TOOL_CALLS[tool])]
    model = calling(*calls)
    made = await world(model)
    for name in ("travel", "canteen", "parking"):
        await made.add(name, f"Rules for {name}.", title=f"{name} rules")
    found = await asked(made)
    texts = "\n".join(
        (
            *(message.text for messages in model.conversations for message in messages),
            *(prompt.user for prompt in model.prompts),
        )
    )
    shown = {name for name in ("manual", "travel", "canteen", "parking") if f"{name}.pdf" in texts}
    assert shown
    assert shown <= set(ids(found))
