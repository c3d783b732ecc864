"""Summaries over fakes: a model that answers by rule, and steps driven as the orchestrations drive them."""

from collections.abc import Callable
from typing import Any

from local.model_server.prompt_reader import read_documents, read_passages
from shared.platform.language_models.models import Prompt
from shared.summaries.models import (
    DocumentOpened,
    FindingChoice,
    MergedStatement,
    MergedSummary,
    SummaryOrder,
    SummaryReply,
    SummaryRequest,
    SummaryResult,
    SummaryStart,
    SummaryStep,
    SummaryView,
    WindowFinding,
    WindowMetric,
    WindowSummary,
)
from shared.summaries.steps import perform
from shared.summaries.store import SummaryStore
from shared.summaries.summaries import begin_summary, start_of, view_summary
from shared.wiring import Services
from tests.fakes.models import Reply, ScriptedChatModel
from tests.fakes.services import fake_services, fake_settings
from tests.world import ANNA, add_corpus

ANSWERS = Callable[[Prompt], Reply]


def by_rule(prompt: Prompt) -> Reply:
    """Every block is a finding; the narrative tells all findings."""
    if prompt.name == "summarise_window":
        (document,) = read_documents(prompt.user)
        texts = [block.text for block in document.blocks]
        metrics = [
            WindowMetric(name="number", value=word, unit=None, quote=text)
            for text in texts
            for word in text.split()
            if word.isdigit()
        ]
        return WindowSummary(
            findings=tuple(WindowFinding(text=text, quote=text) for text in texts),
            metrics=tuple(metrics),
            tags=("Numbers",),
        )
    numbers = tuple(passage.number for passage in read_passages(prompt.user))
    if prompt.name == "summarise_choice":
        return FindingChoice(numbers=numbers)
    told = tuple(MergedStatement(text=f"Statement {number}.", findings=(number,)) for number in numbers)
    return MergedSummary(statements=told, key_findings=numbers, tags=("numbers",))


async def services_of(answer: ANSWERS = by_rule, **settings: Any) -> Services:
    services = fake_services(chat_model=ScriptedChatModel(answer=answer), settings=fake_settings(**settings))
    await add_corpus(services)
    return services


async def add_blocks(services: Services, doc_id: str, count: int, readers: list[str]) -> None:
    rows = [
        {
            "block_id": f"{doc_id}-x{number:02d}",
            "doc_id": doc_id,
            "filename": f"{doc_id}.pdf",
            "block_type": "text",
            "page_number": number + 2,
            "content": f"Fact number {number} of this document. " + "Padding words. " * 60,
            "access_control_list": readers,
        }
        for number in range(count)
    ]
    await services.content_index.upload(rows)


async def begin(services: Services, *doc_ids: str, **order: Any) -> SummaryRequest:
    return await begin_summary(SummaryOrder(doc_ids=doc_ids, **order), ANNA, services)


async def read_document(services: Services, request: SummaryRequest, index: int) -> SummaryReply:
    step = SummaryStep(summary_id=request.summary_id, index=index)
    opened = await perform("open", step, services)
    if not isinstance(opened, DocumentOpened):
        return opened
    await perform("read", step.model_copy(update={"end": opened.window_count}), services)
    return await perform("reduce", step, services)


async def drive(services: Services, start: SummaryStart) -> None:
    """What the orchestration does when nothing fails."""
    request = await SummaryStore(services.blobs, start.summary_id).request()
    for index in range(start.document_count):
        await read_document(services, request, index)
    await perform("merge", SummaryStep(summary_id=start.summary_id), services)


async def summarise(services: Services, request: SummaryRequest) -> SummaryView:
    await drive(services, start_of(request, services.settings))
    return await view_summary(request, services, ANNA)


def result_of(view: SummaryView) -> SummaryResult:
    assert view.result is not None
    return view.result
