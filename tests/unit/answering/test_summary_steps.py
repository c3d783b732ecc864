"""Tests for the steps of a summary with fake services: rights, failures, deadlines and proof."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from local.model_server.prompt_reader import read_passages
from shared.access.limits import use_of_today
from shared.answering.budget import tokens_in
from shared.answering.steps import CommitSummary
from shared.answering.summary_models import (
    DocumentEnded,
    DocumentOpened,
    FindingChoice,
    OpenDocument,
    ReadWindows,
    ReduceDocument,
    SummaryStale,
    WindowsRead,
)
from shared.answering.summary_runs import begin_summary, view_summary
from shared.answering.summary_script import DocumentSummary
from shared.platform.errors import DependencyError, ModelFixableError
from shared.platform.language_models.models import Prompt
from shared.platform.telemetry import report_usage
from shared.runs.events import CompleteEvent, ReservedLine, ResumedStatus
from shared.runs.journal import read_journal
from shared.runs.models import SummaryOrder
from shared.runs.run_files import RunFiles
from shared.wiring import Services
from tests.fakes.dying import Died
from tests.fakes.models import Reply, ScriptedChatModel, scripted
from tests.unit.answering.summarising import (
    ANSWERS,
    add_blocks,
    begin,
    by_rule,
    drive,
    finish,
    merge,
    on_document,
    open_summary,
    performed,
    read_document,
    result_of,
    services_of,
    start_reading,
    summarise,
)
from tests.world import ANNA, BEN


async def test_documents_become_one_cited_summary() -> None:
    services = await services_of()
    view = await summarise(services, await begin(services, "manual", "report-2024"))
    result = result_of(view)
    assert (view.status, view.progress) == ("completed", 1.0)
    assert result.summary == (
        "Statement 1. (Source: manual.pdf, S. 1)[1] Statement 2. (Source: report-2024.pdf, S. 1)[2]"
    )
    assert [one.citation.quote for one in result.key_findings] == [
        "The pump runs at 15 bar.",
        "Revenue was 53 million euros.",
    ]
    assert [(one.value, one.citation.doc_id) for one in result.metrics] == [
        ("15", "manual"),
        ("53", "report-2024"),
    ]
    assert result.tags == ("numbers",)
    assert result.warnings == ()
    assert all(one.verified for one in result.citations)


async def test_foreign_and_absent_documents_are_not_found_in_the_same_words() -> None:
    services = await services_of()
    order = SummaryOrder(doc_ids=("manual", "nothing", "report-2023"))
    summary = await begin_summary(order, BEN, services)
    await drive(services, summary.run_id, DocumentSummary())
    result = result_of(await view_summary(summary, services, BEN))
    foreign, absent, own = result.documents
    assert (foreign.status, absent.status, own.status) == ("not_found", "not_found", "done")
    assert (foreign.warning or "").replace("manual", "nothing") == absent.warning
    assert "15 bar" not in result.model_dump_json()
    assert isinstance(services.chat_model, ScriptedChatModel)
    assert not any("15 bar" in prompt.user for prompt in services.chat_model.prompts)


async def test_a_summary_of_nothing_that_is_found_fails() -> None:
    services = await services_of()
    view = await summarise(services, await begin(services, "nothing", "neither"))
    assert (view.status, view.error_type) == ("failed", "DocumentNotFoundError")


async def test_a_document_closed_between_two_windows_gives_nothing() -> None:
    services = await services_of(summary_window_tokens=300)
    await add_blocks(services, "manual", 4, ["engineering"])
    summary = await begin(services, "manual", "report-2024")
    await open_summary(services, summary)
    opened = await on_document(services, summary, 0, OpenDocument())
    assert isinstance(opened, DocumentOpened)
    assert opened.window_count > 2
    first = await on_document(services, summary, 0, ReadWindows(first=0, end=1))
    assert first == WindowsRead(done=1)
    await services.documents_index.merge([{"doc_id": "manual", "access_control_list": ["somebody"]}])
    refused = await on_document(services, summary, 0, ReadWindows(first=1, end=2))
    assert refused == DocumentEnded(status="not_found")
    reopened = await on_document(services, summary, 0, ReduceDocument(window_count=opened.window_count))
    assert reopened == refused
    await read_document(services, summary, 1)
    await finish(services, summary)
    result = result_of(await view_summary(summary, services, ANNA))
    assert [one.status for one in result.documents] == ["not_found", "done"]
    assert "15 bar" not in result.model_dump_json()


async def test_a_document_closed_after_its_reduce_is_left_out_of_the_result() -> None:
    services = await services_of()
    summary = await begin(services, "manual", "report-2024")
    await open_summary(services, summary)
    for index in range(2):
        await read_document(services, summary, index)
    await services.documents_index.merge([{"doc_id": "manual", "access_control_list": []}])
    await finish(services, summary)
    journal = await read_journal(services.run_log, services.blobs, summary.run_id)
    assert "15 bar" not in journal.events[-1].to_line()
    result = result_of(await view_summary(summary, services, ANNA))
    assert [one.status for one in result.documents] == ["not_found", "done"]


async def test_a_document_closed_while_the_summary_is_merged_sends_it_back() -> None:
    services = await services_of()
    summary = await begin(services, "manual", "report-2024")
    await open_summary(services, summary)
    for index in range(2):
        await read_document(services, summary, index)
    await merge(services, summary)
    await services.documents_index.merge([{"doc_id": "manual", "access_control_list": []}])
    stale = await performed(services, summary.run_id, CommitSummary(step=4, merge_step=3))
    assert stale.observation == SummaryStale()
    assert (await view_summary(summary, services, ANNA)).status == "running"
    await merge(services, summary, step=5)
    await performed(services, summary.run_id, CommitSummary(step=6, merge_step=5))
    journal = await read_journal(services.run_log, services.blobs, summary.run_id)
    assert "15 bar" not in journal.events[-1].to_line()
    view = await view_summary(summary, services, ANNA)
    assert [one.status for one in result_of(view).documents] == ["not_found", "done"]


async def test_what_late_children_write_after_the_merge_began_is_refused() -> None:
    services = await services_of()
    summary = await begin(services, "manual", "report-2024")
    await open_summary(services, summary)
    await read_document(services, summary, 1)
    await merge(services, summary)
    late = await on_document(services, summary, 0, OpenDocument())
    assert late.kind == "run_closed"


async def test_a_document_closed_after_the_end_is_withheld_when_it_is_read() -> None:
    services = await services_of()
    summary = await begin(services, "manual", "report-2024")
    await summarise(services, summary)
    await services.documents_index.merge([{"doc_id": "manual", "access_control_list": []}])
    view = await view_summary(summary, services, ANNA)
    assert "15 bar" not in view.model_dump_json()
    assert [child.status for child in view.children] == ["not_found", "done"]
    assert "manual.pdf" not in view.model_dump_json()
    assert result_of(view).summary == ""


async def test_a_window_that_was_read_is_not_read_again() -> None:
    services = await services_of()
    summary = await begin(services, "manual")
    await open_summary(services, summary)
    first = await start_reading(services, summary, 0)
    again = await on_document(services, summary, 0, ReadWindows(first=0, end=1))
    assert again == first == WindowsRead(done=1)
    assert isinstance(services.chat_model, ScriptedChatModel)
    assert len(services.chat_model.prompts) == 1


async def test_windows_of_a_document_are_read_side_by_side() -> None:
    services = await services_of(summary_window_tokens=300)
    await add_blocks(services, "manual", 5, ["engineering"])
    summary = await begin(services, "manual")
    await open_summary(services, summary)
    opened = await on_document(services, summary, 0, OpenDocument())
    assert isinstance(opened, DocumentOpened)
    numbers = range(opened.window_count)
    read = await asyncio.gather(
        *(on_document(services, summary, 0, ReadWindows(first=one, end=one + 1)) for one in numbers)
    )
    assert read == [WindowsRead(done=1)] * opened.window_count
    view = await view_summary(summary, services, ANNA)
    assert [(one.windows, one.windows_done) for one in view.children] == [(opened.window_count,) * 2]


async def test_a_window_that_is_read_twice_at_once_counts_once() -> None:
    services = await services_of()
    summary = await begin(services, "manual")
    await open_summary(services, summary)
    await on_document(services, summary, 0, OpenDocument())
    read = ReadWindows(first=0, end=1)
    both = await asyncio.gather(*(on_document(services, summary, 0, read) for _ in range(2)))
    assert both == [WindowsRead(done=1)] * 2
    view = await view_summary(summary, services, ANNA)
    assert [(one.windows, one.windows_done) for one in view.children] == [(1, 1)]


async def test_a_failing_window_leaves_the_others_and_a_warning() -> None:
    def failing(prompt: Prompt) -> Reply:
        return DependencyError("down") if "Fact number 1 " in prompt.user else by_rule(prompt)

    services = await services_of(failing, summary_window_tokens=300)
    await add_blocks(services, "manual", 3, ["engineering"])
    summary = await begin(services, "manual")
    await open_summary(services, summary)
    assert await start_reading(services, summary, 0, 4) == WindowsRead(done=3, failed=1, again=1)
    view = await summarise(services, summary)
    (document,) = result_of(view).documents
    assert document.status == "partial"
    assert "1 of 4 parts of manual.pdf were not read." in (document.warning or "")
    assert "Fact number 2" in view.model_dump_json()


async def test_a_model_that_cannot_put_together_leaves_the_findings_as_they_are() -> None:
    def reading_only(prompt: Prompt) -> Reply:
        return by_rule(prompt) if prompt.name == "summarise_window" else ModelFixableError("no")

    services = await services_of(reading_only)
    result = result_of(await summarise(services, await begin(services, "manual", "report-2024")))
    assert result.summary.startswith("The pump runs at 15 bar. (Source: manual.pdf, S. 1)[1]")
    assert any("model failed (ModelOutputError)" in warning for warning in result.warnings)


async def test_what_a_late_child_had_read_is_used_with_a_warning() -> None:
    services = await services_of()
    summary = await begin(services, "manual", "report-2024", "report-2023")
    await open_summary(services, summary)
    await start_reading(services, summary, 0)
    await read_document(services, summary, 1)
    await finish(services, summary)
    result = result_of(await view_summary(summary, services, ANNA))
    assert [one.status for one in result.documents] == ["partial", "done", "failed"]
    assert "manual.pdf was not finished in time." in result.warnings
    assert "15 bar" in result.key_findings[0].citation.quote


async def test_many_findings_are_halved_until_they_fit() -> None:
    prompt_names: list[str] = []

    def counting(prompt: Prompt) -> Reply:
        prompt_names.append(prompt.name)
        if prompt.name == "summarise_choice":
            numbers = [passage.number for passage in read_passages(prompt.user)]
            return FindingChoice(numbers=tuple(numbers[::2]))
        return by_rule(prompt)

    services = await services_of(counting, summary_window_tokens=900)
    await add_blocks(services, "manual", 20, ["engineering"])
    result = result_of(await summarise(services, await begin(services, "manual")))
    assert prompt_names.count("summarise_choice") > 1
    assert prompt_names[-1] == "summarise_merge"
    assert result.documents[0].status == "done"
    assert 0 < len(result.key_findings) <= 12


async def test_a_long_document_says_what_was_left_out() -> None:
    services = await services_of(summary_window_tokens=300, summary_max_windows=2)
    await add_blocks(services, "manual", 5, ["engineering"])
    result = result_of(await summarise(services, await begin(services, "manual")))
    assert result.documents[0].status == "partial"
    assert "were left out" in result.warnings[0]


async def test_nothing_is_read_when_the_time_is_over() -> None:
    services = await services_of(summary_timeout_s=0.001)
    view = await summarise(services, await begin(services, "manual"))
    assert view.status == "failed"
    assert isinstance(services.chat_model, ScriptedChatModel)
    assert services.chat_model.prompts == []


async def test_focus_and_language_reach_the_model_as_data() -> None:
    services = await services_of()
    await summarise(services, await begin(services, "manual", focus="<b>Pressure?</b>", language="de"))
    assert isinstance(services.chat_model, ScriptedChatModel)
    prompt = services.chat_model.prompts[0]
    assert "<focus>&lt;b&gt;Pressure?&lt;/b&gt;</focus>" in prompt.user
    assert "<language>de</language>" in prompt.user
    assert "Pressure" not in prompt.system


async def with_small_budget(answer: ANSWERS = by_rule) -> Services:
    return await services_of(
        answer, summary_max_tokens=20_000, summary_window_tokens=300, summary_output_tokens=1000
    )


async def tokens_used(services: Services) -> int:
    views = await use_of_today(ANNA.user_id, services.settings, services.user_limits)
    return int(next(view.used for view in views if view.resource == "chat_tokens"))


@pytest.mark.attack("limits")
async def test_order_stays_within_its_budget_and_says_what_was_left_out() -> None:
    services = await with_small_budget()
    for doc_id in ("manual", "report-2024"):
        await add_blocks(services, doc_id, 40, ["engineering"])
    result = result_of(await summarise(services, await begin(services, "manual", "report-2024")))
    assert 2000 < await tokens_used(services) < 20_000
    assert [one.status for one in result.documents] == ["partial", "partial"]
    assert "blocks were left out" in (result.documents[0].warning or "")


@pytest.mark.attack("limits")
async def test_model_that_writes_without_end_uses_up_no_more_than_its_step_may() -> None:
    def endless(prompt: Prompt) -> Reply:
        report_usage(50_000)
        return ModelFixableError("It is no JSON.")

    services = await with_small_budget(endless)
    await add_blocks(services, "manual", 40, ["engineering"])
    await summarise(services, await begin(services, "manual"))
    assert len(scripted(services.chat_model).prompts) == 1


async def test_a_summary_whose_worker_died_is_completed_whole_and_pays_for_the_lost_call() -> None:
    dies = True

    def dying(prompt: Prompt) -> Reply:
        if dies and "Fact number 2 " in prompt.user:
            raise Died
        return by_rule(prompt)

    services = await services_of(dying, summary_window_tokens=300)
    await add_blocks(services, "manual", 4, ["engineering"])
    summary = await begin(services, "manual", "report-2024")
    with pytest.raises(Died):
        await drive(services, summary.run_id, DocumentSummary())
    journal = await read_journal(services.run_log, services.blobs, summary.run_id)
    lost = journal.events[-1]
    assert isinstance(lost, ReservedLine)
    read = sum(one.windows_done for one in (await view_summary(summary, services, ANNA)).children)
    assert read > 1
    dies = False
    before = len(scripted(services.chat_model).prompts)
    view = await summarise(services, summary)
    assert [one.status for one in result_of(view).documents] == ["done", "done"]
    windows = [
        one for one in scripted(services.chat_model).prompts[before:] if one.name == "summarise_window"
    ]
    assert len(windows) == sum(one.windows for one in view.children) - read
    journal = await read_journal(services.run_log, services.blobs, summary.run_id)
    complete = journal.events[-1]
    assert isinstance(complete, CompleteEvent)
    assert complete.answer.tokens == tokens_in(journal.events) > lost.tokens


async def test_a_revived_summary_has_all_its_time_again() -> None:
    services = await services_of()
    summary = await begin(services, "manual")
    files = RunFiles(services.blobs, summary.run_id)
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    await files.put_request((await files.request()).model_copy(update={"created_at": long_ago}))
    await services.run_log.append(summary.run_id, [ResumedStatus(at=datetime.now(UTC))])
    assert (await summarise(services, summary)).status == "completed"
