"""Tests for complete runs of questions in one process, with fakes for all services."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest

from shared.answering.agent import AGENT_EVENTS, Agent
from shared.answering.inline import run_to_end
from shared.answering.runs import begin_run, close_dead_run, view_run
from shared.answering.steps import (
    CommitAnswer,
    Prepare,
    Prepared,
    StepFailed,
    StepInput,
    TakeTurn,
)
from shared.platform.errors import (
    DependencyError,
    ModelFixableError,
    NotFoundError,
    PayloadTooLargeError,
)
from shared.platform.language_models.models import ModelTurn, ToolCall
from shared.platform.search import SearchPage, SearchRequest
from shared.retrieval.models import DocumentRecord
from shared.runs.events import ThoughtEvent
from shared.runs.models import ChatRequest, RunView
from shared.runs.plan import PlanFilter
from shared.runs.run_store import owned_run
from tests.fakes.models import ScriptedChatModel, scripted
from tests.fakes.run_log import InMemoryRunLog
from tests.fakes.search_index import InMemorySearchIndex
from tests.fakes.services import fake_services, fake_settings
from tests.scripts import perform
from tests.unit.answering.late_passages import LateReports
from tests.world import ANNA, BEN, Model, add_record, ask, corpus_services, events_of, plan


def text_of(view: RunView) -> str:
    assert view.answer is not None
    return view.answer.text


async def test_an_answer_is_streamed_cited_and_committed() -> None:
    view, seen = await ask(await corpus_services())
    assert view.status == "completed"
    assert text_of(view) == "It runs at 15 bar. (Source: manual.pdf, S. 1)[1]"
    assert "".join(event.data["text"] for event in seen if event.name == "TOKEN") == text_of(view)
    assert [event.name for event in seen][-1] == "COMPLETE"
    assert seen[-1].data["answer"]["text"] == text_of(view)
    assert {item.status for item in view.todo} == {"done"}


async def test_a_user_without_the_right_is_told_nothing_of_the_document() -> None:
    services = await corpus_services(Model(plan(), answer='<gap missing="the pressure" next_step="Ask."/>'))
    view, seen = await ask(services, user=BEN)
    assert view.answer is not None
    assert view.answer.abstained
    assert "manual.pdf" not in "".join(event.model_dump_json() for event in seen)
    assert {item.status for item in view.todo} == {"failed"}


async def test_without_any_document_no_model_is_asked_for_an_answer() -> None:
    model = Model(plan()).chat_model()
    services = fake_services(chat_model=model)
    view, _ = await ask(services)
    assert view.answer is not None
    assert view.answer.abstained
    assert "Next step:" in text_of(view)
    assert [prompt.name for prompt in model.prompts] == ["plan"]


@pytest.mark.parametrize("query_type", ["LISTING", "METADATA_SEARCH"])
async def test_questions_about_documents_are_answered_from_metadata(query_type: str) -> None:
    services = await corpus_services(Model(plan(query_type=query_type), answer="Two reports."))
    view, seen = await ask(services, user=BEN)
    assert text_of(view) == "Two reports."
    assert [event.data["tool"] for event in seen if event.name == "TOOL_STARTED"] == ["rag_list_documents"]
    prompt = scripted(services.chat_model).prompts[-1].user
    assert "report-2023.pdf" in prompt
    assert "manual.pdf" not in prompt


async def test_a_comparison_gets_blocks_of_every_document_that_it_names() -> None:
    services = await corpus_services(
        Model(
            plan(query_type="COMPARISON", document_references=("report 2023", "report 2024")),
            answer="48 <cite doc_id='x' quote='y'/>".replace("'", '"'),
        )
    )
    view, _ = await ask(services, question="Compare the revenue of both reports.")
    prompt = scripted(services.chat_model).prompts[1].user
    assert "report-2023.pdf" in prompt
    assert "report-2024.pdf" in prompt
    assert "manual.pdf" not in prompt
    assert view.answer is not None
    assert view.answer.unsupported_claims == 1


async def test_a_name_that_leads_nowhere_widens_the_search() -> None:
    services = await corpus_services(Model(plan(document_references=("manual",))))
    view, seen = await ask(services, doc_ids=["report-2023"])
    assert view.status == "completed"
    assert all("manual.pdf" not in event.model_dump_json() for event in seen if event.name == "TOOL_RESULT")


async def test_the_callers_limits_hold() -> None:
    services = await corpus_services(Model(plan(), answer='<gap missing="m" next_step="n"/>'))
    await ask(services, doc_ids=["report-2024"], project_id=None)
    prompt = scripted(services.chat_model).prompts[-1].user
    assert "report-2024.pdf" in prompt
    assert "manual.pdf" not in prompt


async def test_a_plan_that_is_not_valid_costs_the_plan_not_the_answer() -> None:
    view, seen = await ask(await corpus_services(Model(ModelFixableError("garbage"))))
    assert view.status == "completed"
    assert "15 bar" in text_of(view)
    assert view.answer is not None
    (warning,) = view.answer.warnings
    assert "your exact question" in warning
    assert warning not in text_of(view)
    assert [event.data["text"] for event in seen if event.data.get("state") == "warning"] == [warning]


async def test_a_finished_step_that_runs_again_does_nothing_twice() -> None:
    services = await corpus_services()
    view, before = await ask(services)
    for action in (
        Prepare(step=1),
        TakeTurn(step=2, prepared_step=1),
        CommitAnswer(step=3, answer_step=2, todo=()),
    ):
        await perform(StepInput(run_id=view.run_id, action=action), services)
    assert events_of(services, view.run_id) == before


async def test_a_step_that_was_cut_off_is_done_anew_behind_a_mark() -> None:
    services = await corpus_services()
    request = await begin_run(ChatRequest(question="x"), ANNA, services)
    half_done = [ThoughtEvent(step=1, text="Reading")]
    await services.run_log.append(request.run_id, half_done)
    observation = await perform(StepInput(run_id=request.run_id, action=Prepare(step=1)), services)
    assert isinstance(observation, Prepared)
    states = [event.data.get("state") for event in events_of(services, request.run_id)]
    assert "restarted" in states


async def test_a_run_is_seen_by_its_owner_alone() -> None:
    services = await corpus_services()
    view, _ = await ask(services)
    for run_id, user in ((view.run_id, BEN), ("missing", ANNA)):
        with pytest.raises(NotFoundError, match="There is no run"):
            await owned_run(run_id, user, services.runs)


async def test_a_run_in_work_shows_its_latest_todo_list() -> None:
    services = await corpus_services()
    request = await begin_run(ChatRequest(question="x"), ANNA, services)
    await perform(StepInput(run_id=request.run_id, action=Prepare(step=1)), services)
    view = await view_run(await owned_run(request.run_id, ANNA, services.runs), services)
    assert (view.status, view.answer, [item.description for item in view.todo]) == (
        "running",
        None,
        ["Known", "Checked"],
    )


async def test_a_dead_run_is_closed_once() -> None:
    services = await corpus_services()
    request = await begin_run(ChatRequest(question="x"), ANNA, services)
    for _ in range(2):
        await close_dead_run(request.run_id, "It was stopped.", services)
    assert [event.name for event in events_of(services, request.run_id)].count("ERROR") == 1
    assert (await owned_run(request.run_id, ANNA, services.runs)).status == "failed"


async def test_a_committed_answer_is_never_reported_as_failed() -> None:
    services = await corpus_services()
    request = await begin_run(ChatRequest(question="x"), ANNA, services)
    initial_record = await owned_run(request.run_id, ANNA, services.runs)
    await run_to_end(request.run_id, services)
    await services.runs.replace(initial_record)  # as if the worker had died after the last event
    await close_dead_run(request.run_id, "It was stopped.", services)
    assert [event.name for event in events_of(services, request.run_id)].count("ERROR") == 0
    assert (await owned_run(request.run_id, ANNA, services.runs)).status == "completed"


async def test_an_attempt_that_was_overtaken_answers_with_the_result_of_the_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shared.answering.attempts.POLL_S", 0.01)
    services = await corpus_services()
    request = await begin_run(ChatRequest(question="x"), ANNA, services)
    step = StepInput(run_id=request.run_id, action=Prepare(step=1))
    later: list[object] = []

    class Overtaken(ScriptedChatModel):
        async def parse(self, prompt: Any, output: Any, limits: Any) -> Any:
            later.append(await perform(step, services))
            return await services.chat_model.parse(prompt, output, limits)

    earlier = await perform(step, replace(services, chat_model=Overtaken()))
    assert earlier == later[0]
    assert isinstance(earlier, Prepared)


async def test_a_log_that_is_out_of_reach_is_an_expected_failure() -> None:
    class BrokenLog(InMemoryRunLog):
        async def append(self, run_id: str, events: Any, *, at_offset: int | None = None) -> int:
            if any(event.data.get("step") for event in events):
                raise DependencyError("The blob storage is out of reach.")
            return await super().append(run_id, events, at_offset=at_offset)

    services = await corpus_services(run_log=BrokenLog())
    request = await begin_run(ChatRequest(question="x"), ANNA, services)
    observation = await perform(StepInput(run_id=request.run_id, action=Prepare(step=1)), services)
    assert isinstance(observation, StepFailed)
    assert observation.retryable


async def test_a_question_that_is_too_long_is_refused_before_anything_is_stored() -> None:
    services = fake_services()
    with pytest.raises(PayloadTooLargeError):
        await begin_run(ChatRequest(question="x" * 8001), ANNA, services)


async def test_an_agent_yields_the_agent_events_and_ends_with_the_answer() -> None:
    agent = Agent.create_rag_agent(await corpus_services(), ANNA)
    seen = [event async for event in agent.execute("At what pressure?", "thread-1")]
    assert {event.name for event in seen} <= AGENT_EVENTS
    assert [event.name for event in seen][-1] == "COMPLETE"
    assert seen[-1].data["thread_id"] == "thread-1"
    assert set(agent.tools) >= {
        "rag_semantic_search",
        "rag_list_documents",
        "rag_get_document",
    }


async def test_an_agent_raises_what_nobody_expected_instead_of_waiting() -> None:
    agent = Agent.create_rag_agent(fake_services(chat_model=None), ANNA)
    with pytest.raises(AttributeError):
        _ = [event async for event in agent.execute("x")]


async def test_an_answer_that_was_cut_off_says_so() -> None:
    class Cut(ScriptedChatModel):
        async def stream_turn(self, *_: Any, **__: Any) -> AsyncGenerator[str | ModelTurn, None]:
            yield "It runs at"
            yield ModelTurn(text="It runs at", cut=True)

    plans = Cut(answer=lambda prompt: plan())
    view, _ = await ask(await corpus_services(chat_model=plans))
    assert view.answer is not None
    assert view.answer.truncated
    assert view.answer.text.startswith("It runs at")
    assert view.answer.warnings == ("The answer was cut off because it was too long.",)
    assert view.answer.warnings[0] in view.answer.text


async def test_what_the_model_looks_up_may_be_quoted() -> None:
    call = ToolCall(call_id="c1", name="rag_semantic_search", arguments='{"query": "revenue", "lang": "en"}')
    pages = ToolCall(call_id="c2", name="read_pages", arguments='{"doc_id": "report-2024"}')
    cited = '<answer>53. <cite doc_id="report-2024" quote="Revenue was 53 million euros."/>'
    model = ScriptedChatModel(
        plan(document_references=("manual",)),
        ModelTurn(text="I look for the revenue.", tool_calls=(call, pages)),
        ModelTurn(text=cited),
    )
    services = await corpus_services(chat_model=model)
    view, seen = await ask(services)
    assert text_of(view) == "53. (Source: report-2024.pdf, S. 1)[1]"
    tools = [event.data["tool"] for event in seen if event.name == "TOOL_STARTED"]
    assert tools == ["rag_semantic_search", "rag_semantic_search", "read_pages"]
    assert "I look for the revenue." in [event.data["text"] for event in seen if event.name == "THOUGHT"]
    assert [message.role for message in model.conversations[-1]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
    ]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("rag_metadata_search", '{"query": "report 2024"}'),
        ("rag_list_documents", "{}"),
        ("rag_get_document", '{"doc_id": "report-2024"}'),
    ],
)
async def test_the_record_of_a_document_that_a_tool_finds_may_be_quoted(tool: str, arguments: str) -> None:
    call = ToolCall(call_id="c1", name=tool, arguments=arguments)
    cited = '<answer>The report. <cite doc_id="report-2024" quote="title: report 2024"/>'
    model = ScriptedChatModel(
        plan(document_references=("manual",)), ModelTurn(tool_calls=(call,)), ModelTurn(text=cited)
    )
    view, _ = await ask(await corpus_services(chat_model=model))
    assert text_of(view) == "The report. (Source: report-2024.pdf, metadata)[1]"


async def test_a_tool_finds_nothing_that_the_asker_may_not_read() -> None:
    call = ToolCall(call_id="c1", name="read_pages", arguments='{"doc_id": "manual"}')
    cited = '<answer>15. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'
    model = ScriptedChatModel(plan(), ModelTurn(tool_calls=(call,)), ModelTurn(text=cited))
    view, _ = await ask(await corpus_services(chat_model=model), user=BEN)
    assert view.answer is not None
    assert (view.answer.citations, view.answer.unsupported_claims) == ((), 1)
    assert "15 bar" not in "".join(message.text for message in model.conversations[-1])


async def test_a_gap_is_searched_for_and_the_answer_goes_on() -> None:
    first = (
        '<answer>It runs at 15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/> '
        '<gap missing="the revenue of 2024" next_step="Ask."/> dropped'
    )
    rest = '<answer>Revenue was 53. <cite doc_id="report-2024" quote="Revenue was 53 million euros."/>'
    replies = iter([first, rest])
    model = ScriptedChatModel(
        answer=lambda prompt: plan(search_queries=()) if prompt.name == "plan" else next(replies)
    )
    services = await corpus_services(chat_model=model, content_index=LateReports("block_id"))
    view, seen = await ask(services)
    assert view.answer is not None
    assert text_of(view) == (
        "It runs at 15 bar. (Source: manual.pdf, S. 1)[1] \n\n"
        "Revenue was 53. (Source: report-2024.pdf, S. 1)[2]"
    )
    assert "".join(event.data["text"] for event in seen if event.name == "TOKEN") == text_of(view)
    assert (view.answer.abstained, view.answer.missing) == (False, "")


async def test_the_search_for_a_gap_stays_within_the_documents_that_the_question_names() -> None:
    gap = '<answer><gap missing="No document states the revenue of 2024." next_step="Ask."/>'
    model = ScriptedChatModel(plan(document_references=("manual",)), gap)
    services = await corpus_services(chat_model=model)
    view, _ = await ask(services, question="What revenue does the manual state?")
    assert text_of(view) == "No document states the revenue of 2024.\n\nAsk."
    assert [prompt.name for prompt in model.prompts] == ["plan", "answer"]


async def test_a_gap_about_which_nothing_new_is_found_costs_no_further_call() -> None:
    model = ScriptedChatModel(plan(), '<answer><gap missing="the weight" next_step="Ask Ann."/>')
    view, seen = await ask(await corpus_services(chat_model=model))
    assert view.answer is not None
    assert (view.answer.abstained, view.answer.missing) == (True, "the weight")
    assert text_of(view).startswith("the weight")
    assert [prompt.name for prompt in model.prompts] == ["plan", "answer"]
    assert len([event for event in seen if event.name == "TOOL_STARTED"]) == 2


async def test_a_document_that_is_missing_is_not_searched_for_in_others() -> None:
    name = "retention-2031.pdf"
    gap = f'<answer><gap missing="There is no document named {name}." next_step="Ask Ann."/>'
    model = ScriptedChatModel(plan(document_references=(name,)), gap)
    services = await corpus_services(chat_model=model, content_index=LateReports("block_id"))
    view, _ = await ask(services, question=f"What does {name} say about the revenue?")
    assert text_of(view) == f"There is no document named {name}.\n\nAsk Ann."
    assert [prompt.name for prompt in model.prompts] == ["plan", "answer"]


async def test_passages_about_something_else_are_not_shown_for_a_gap() -> None:
    model = ScriptedChatModel(plan(), '<answer><gap missing="seed crackers" next_step="Ask Ann."/>')
    services = await corpus_services(chat_model=model, content_index=LateReports("block_id"))
    view, _ = await ask(services)
    assert text_of(view) == "seed crackers\n\nAsk Ann."
    assert [prompt.name for prompt in model.prompts] == ["plan", "answer"]


async def test_what_was_written_behind_a_gap_is_shown_when_nothing_new_is_found() -> None:
    reply = (
        '<answer><gap missing="the weight" next_step="Ask Ann."/>The pressure is 15 bar. '
        '<cite doc_id="manual" quote="The pump runs at 15 bar."/>\n\n<gap missing="the height"/></answer>'
    )
    view, seen = await ask(await corpus_services(chat_model=ScriptedChatModel(plan(), reply)))
    assert text_of(view) == (
        "the weight\n\nAsk Ann.\n\nThe pressure is 15 bar. (Source: manual.pdf, S. 1)[1]\n\nthe height"
    )
    assert "".join(event.data["text"] for event in seen if event.name == "TOKEN") == text_of(view)


async def test_a_gap_that_could_not_be_searched_for_is_not_said_to_be_missing() -> None:
    class Failing(InMemorySearchIndex):
        async def search(self, request: SearchRequest) -> SearchPage:
            if "weight" in (request.text or ""):
                raise DependencyError("The search service is out of reach.")
            return await super().search(request)

    first = '<answer><gap missing="No document states the weight." next_step="Ask Ann."/>'
    again = '<answer><gap missing="The weight could not be searched for." next_step="Ask again."/>'
    model = ScriptedChatModel(plan(), first, again)
    services = await corpus_services(chat_model=model, content_index=Failing("block_id"))
    view, seen = await ask(services)
    assert view.answer is not None
    assert text_of(view) == "The weight could not be searched for.\n\nAsk again."
    assert "<not_searched>No document states the weight.</not_searched>" in model.conversations[-1][-1].text
    warning = "The search for this failed, so it may still be in the documents."
    assert view.answer.warnings == (warning,)
    assert [event.data["text"] for event in seen if event.data.get("state") == "warning"] == [warning]


async def test_a_model_that_only_calls_tools_is_told_to_answer_in_its_last_turn() -> None:
    calls = (
        ToolCall(call_id="c", name="rag_semantic_search", arguments=f'{{"query": "pump {number}"}}')
        for number in range(20)
    )
    allowed: list[bool] = []

    class Calling(ScriptedChatModel):
        async def stream_turn(
            self, *_: Any, may_call: bool = True, **__: Any
        ) -> AsyncGenerator[str | ModelTurn, None]:
            allowed.append(may_call)
            if not may_call:
                yield "It runs at 15 bar."
            yield ModelTurn(tool_calls=(next(calls),)) if may_call else ModelTurn(text="It runs at 15 bar.")

    services = await corpus_services(
        chat_model=Calling(plan()), settings=fake_settings(max_agent_turns=3, subagents_enabled=False)
    )
    view, _ = await ask(services)
    assert allowed == [True, True, False]
    assert view.status == "completed"


@pytest.mark.parametrize(
    ("reference", "offered"),
    [
        ("retention-policy-2031.pdf", "Similar names: retention-policy-2029.pdf."),
        ("remote-work-policy-2031.pdf", ""),
        ("information-security-policy.pdf", ""),
    ],
)
async def test_only_similar_names_are_offered_for_a_file_that_is_missing(
    reference: str, offered: str
) -> None:
    summary_plan = plan(query_type="DOCUMENT_SUMMARY", document_references=(reference,))
    services = await corpus_services(chat_model=ScriptedChatModel(summary_plan))
    names = ("retention-policy-2029.pdf", "leave-policy.pdf", "travel-policy-2024.pdf", "policy.pdf")
    common_fields = {"status": "ready", "upload_date": "2026-01-01T00:00:00Z", "access_control_list": ["*"]}
    for name in names:
        record = {**common_fields, "doc_id": name, "filename": name, "title": "Our policy"}
        await add_record(services, DocumentRecord.of_row(record))
    view, _ = await ask(services, question=f"Summarise {reference}")
    assert f"a document named “{reference}”" in text_of(view)
    assert [line for line in text_of(view).splitlines() if "Similar names" in line] == (
        [f"Next step: {offered}"] if offered else []
    )


async def test_small_talk_is_answered_by_the_plan() -> None:
    model = ScriptedChatModel(plan(query_type="CONVERSATION", reply="You are welcome.", todo=()))
    view, seen = await ask(await corpus_services(chat_model=model), question="Thanks!")
    assert view.answer is not None
    assert (text_of(view), view.answer.abstained, view.answer.warnings) == ("You are welcome.", False, ())
    assert not [event for event in seen if event.name == "TOOL_STARTED"]


async def test_what_was_said_before_is_in_the_prompt() -> None:
    services = await corpus_services()
    before = await ask(services)
    await ask(services, thread_id=before[0].thread_id, question="Shorter, please")
    prompt = scripted(services.chat_model).prompts[-1].user
    assert "It runs at 15 bar." in prompt.partition("<question>")[0]


@pytest.mark.parametrize("readers", [["engineering"], ["somebody-else"]])
async def test_what_the_answer_before_cited_is_read_again_with_the_rights_of_now(readers: list[str]) -> None:
    cited = '<answer>15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'
    revenue = plan(standalone_question="What was the revenue?", search_queries=("revenue",))
    model = ScriptedChatModel(plan(), cited, revenue, cited)
    services = await corpus_services(
        chat_model=model, settings=fake_settings(answer_blocks=1, subagents_enabled=False)
    )
    before, _ = await ask(services)
    assert isinstance(services.content_index, InMemorySearchIndex)
    await services.content_index.merge([{"block_id": "manual-1", "access_control_list": readers}])
    view, _ = await ask(services, thread_id=before.thread_id, question="And the revenue?")
    documents_text = model.conversations[-1][1].text.partition("<documents>")[2]
    may_read = readers == ["engineering"]
    assert ("The pump runs at 15 bar." in documents_text) == may_read
    assert ('title="manual"' in documents_text) == may_read  # described like the documents found again
    assert view.answer is not None
    assert any(citation.verified for citation in view.answer.citations) == may_read


async def test_our_own_remarks_are_no_part_of_the_conversation() -> None:
    unproved = 'It runs. <cite doc_id="manual" quote="It runs at 99 bar."/>'
    services = await corpus_services(Model(plan(), answer=unproved))
    before, _ = await ask(services)
    assert "Not verified" in text_of(before)
    await ask(services, thread_id=before.thread_id, question="Shorter, please")
    prompt = scripted(services.chat_model).prompts[-1].user
    assert "Not verified" not in prompt


async def test_a_summary_of_a_document_that_does_not_exist_names_the_nearest() -> None:
    summary_plan = plan(
        query_type="DOCUMENT_SUMMARY", intent="doc_summary", document_references=("report-2031.pdf",), todo=()
    )
    model = Model(summary_plan)
    services = await corpus_services(model)
    view, _ = await ask(services, question="Summarise report-2031.pdf")
    assert view.answer is not None
    assert view.answer.abstained
    assert "report-2031.pdf" in view.answer.missing
    assert "report-2024.pdf" in view.answer.next_step
    assert view.answer.citations == ()


async def test_a_listing_that_nothing_meets_says_what_was_asked_for() -> None:
    listing_plan = plan(
        query_type="LISTING", filters=(PlanFilter(field="file_type", values=("vtt",)),), todo=()
    )
    view, _ = await ask(await corpus_services(Model(listing_plan)), question="Which recordings do we have?")
    assert view.answer is not None
    assert view.answer.abstained
    assert "file type: vtt" in view.answer.missing
