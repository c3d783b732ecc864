"""The steps of a summary over fakes: rights, failures, deadlines, what is proved."""

import pytest

from local.model_server.prompt_reader import read_passages
from shared.access.limits import use_of_today
from shared.platform.errors import DependencyError, ModelFixableError
from shared.platform.language_models.models import Prompt
from shared.platform.names import WORK
from shared.platform.telemetry import tell_usage
from shared.summaries.models import DocumentOpened, FindingChoice, SummaryOrder, SummaryStep, WindowsRead
from shared.summaries.steps import perform
from shared.summaries.summaries import begin_summary, view_summary
from shared.wiring import Services
from tests.fakes.models import Reply, ScriptedChatModel, scripted
from tests.unit.summaries.summarising import (
    ANSWERS,
    add_blocks,
    begin,
    by_rule,
    read_document,
    result_of,
    services_of,
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
    request = await begin_summary(SummaryOrder(doc_ids=("manual", "nothing", "report-2023")), BEN, services)
    for index in range(3):
        await read_document(services, request, index)
    await perform("merge", SummaryStep(summary_id=request.summary_id), services)
    result = result_of(await view_summary(request, services, BEN))
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
    request = await begin(services, "manual", "report-2024")
    step = SummaryStep(summary_id=request.summary_id)
    opened = await perform("open", step, services)
    assert isinstance(opened, DocumentOpened)
    assert opened.window_count > 2
    assert await perform("read", step.model_copy(update={"end": 1}), services) == WindowsRead(done=1)
    await services.documents_index.merge([{"doc_id": "manual", "access_control_list": ["somebody"]}])
    refused = await perform("read", step.model_copy(update={"first": 1, "end": 2}), services)
    assert refused.kind == "ended"
    await read_document(services, request, 1)
    await perform("merge", step, services)
    result = result_of(await view_summary(request, services, ANNA))
    assert [one.status for one in result.documents] == ["not_found", "done"]
    assert "15 bar" not in result.model_dump_json()


async def test_a_document_closed_after_its_reduce_is_left_out_of_the_result() -> None:
    services = await services_of()
    request = await begin(services, "manual", "report-2024")
    for index in range(2):
        await read_document(services, request, index)
    await services.documents_index.merge([{"doc_id": "manual", "access_control_list": []}])
    await perform("merge", SummaryStep(summary_id=request.summary_id), services)
    stored = services.blobs.containers[WORK][f"summaries/{request.summary_id}/end.json"]  # type: ignore[attr-defined]
    assert b"15 bar" not in stored.content


async def test_a_document_closed_after_the_end_is_withheld_when_it_is_read() -> None:
    services = await services_of()
    request = await begin(services, "manual", "report-2024")
    await summarise(services, request)
    await services.documents_index.merge([{"doc_id": "manual", "access_control_list": []}])
    view = await view_summary(request, services, ANNA)
    assert "15 bar" not in view.model_dump_json()
    assert [child.status for child in view.children] == ["not_found", "done"]
    assert "manual.pdf" not in view.model_dump_json()
    assert result_of(view).summary == ""


async def test_a_window_that_was_read_is_not_read_again() -> None:
    services = await services_of()
    request = await begin(services, "manual")
    step = SummaryStep(summary_id=request.summary_id, end=1)
    await perform("open", step, services)
    first = await perform("read", step, services)
    assert await perform("read", step, services) == first == WindowsRead(done=1)
    assert isinstance(services.chat_model, ScriptedChatModel)
    assert len(services.chat_model.prompts) == 1


async def test_a_failing_window_leaves_the_others_and_a_warning() -> None:
    def failing(prompt: Prompt) -> Reply:
        return DependencyError("down") if "Fact number 1 " in prompt.user else by_rule(prompt)

    services = await services_of(failing, summary_window_tokens=300)
    await add_blocks(services, "manual", 3, ["engineering"])
    request = await begin(services, "manual")
    step = SummaryStep(summary_id=request.summary_id, end=4)
    await perform("open", step, services)
    read = await perform("read", step, services)
    assert isinstance(read, WindowsRead)
    assert (read.failed, read.again) == (1, 1)
    view = await summarise(services, request)
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
    request = await begin(services, "manual", "report-2024", "report-2023")
    step = SummaryStep(summary_id=request.summary_id, end=1)
    await perform("open", step, services)
    await perform("read", step, services)
    await read_document(services, request, 1)
    await perform("merge", step, services)
    result = result_of(await view_summary(request, services, ANNA))
    assert [one.status for one in result.documents] == ["partial", "done", "failed"]
    assert "manual.pdf was not finished in time." in result.warnings
    assert "15 bar" in result.key_findings[0].citation.quote


async def test_many_findings_are_halved_until_they_fit() -> None:
    asked: list[str] = []

    def counting(prompt: Prompt) -> Reply:
        asked.append(prompt.name)
        if prompt.name == "summarise_choice":
            numbers = [passage.number for passage in read_passages(prompt.user)]
            return FindingChoice(numbers=tuple(numbers[::2]))
        return by_rule(prompt)

    services = await services_of(counting, summary_window_tokens=900)
    await add_blocks(services, "manual", 20, ["engineering"])
    result = result_of(await summarise(services, await begin(services, "manual")))
    assert asked.count("summarise_choice") > 1
    assert asked[-1] == "summarise_merge"
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
        tell_usage(50_000)
        return ModelFixableError("It is no JSON.")

    services = await with_small_budget(endless)
    await add_blocks(services, "manual", 40, ["engineering"])
    await summarise(services, await begin(services, "manual"))
    assert len(scripted(services.chat_model).prompts) == 1
