"""Summaries over fakes: a model that answers by rules, and a driver for the scripts of agents."""

from collections.abc import Callable
from typing import Any

from local.model_server.prompt_reader import read_documents, read_passages
from shared.answering.effects import perform_metered
from shared.answering.script import Readers, Step, Steps, run_agent
from shared.answering.steps import (
    CommitSummary,
    MergeSummary,
    Observation,
    OpenSummary,
    StepInput,
    StepResult,
    SubagentsEnded,
)
from shared.answering.subagent_models import SubagentEnd, SubagentPlace
from shared.answering.summary_models import (
    DocumentAction,
    FindingChoice,
    MergedStatement,
    MergedSummary,
    OpenDocument,
    ReadWindows,
    SummaryResult,
    SummaryView,
    WindowFinding,
    WindowMetric,
    WindowSummary,
)
from shared.answering.summary_runs import begin_summary, view_summary
from shared.answering.summary_script import DocumentReader, DocumentSummary
from shared.platform.language_models.models import Prompt
from shared.runs.models import RunRecord, SummaryOrder
from shared.wiring import Services
from tests.fakes.models import Reply, ScriptedChatModel
from tests.fakes.services import fake_services, fake_settings
from tests.world import ANNA, add_corpus

ANSWERS = Callable[[Prompt], Reply]


def by_rule(prompt: Prompt) -> Reply:
    """Return a reply in which every block is a finding, and the merged summary contains all findings."""
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
    statements = tuple(MergedStatement(text=f"Statement {number}.", findings=(number,)) for number in numbers)
    return MergedSummary(statements=statements, key_findings=numbers, tags=("numbers",))


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


async def begin(services: Services, *doc_ids: str, **order: Any) -> RunRecord:
    return await begin_summary(SummaryOrder(doc_ids=doc_ids, **order), ANNA, services)


async def drive(
    services: Services, run_id: str, agent: DocumentSummary | DocumentReader, path: str = ""
) -> Any:
    """Execute an agent's commands in order, without their pauses, and return its end."""
    script = run_agent(agent)
    result: Any = None
    while True:
        try:
            command = script.send(result)
        except StopIteration as ended:
            return ended.value
        match command:
            case Step(action=action):
                result = await performed(services, run_id, action, path)
            case Steps():
                result = tuple([await performed(services, run_id, one, path) for one in command.actions])
            case Readers():
                ends = [
                    await drive(services, run_id, DocumentReader(one), one.path) for one in command.starts
                ]
                result = StepResult(observation=SubagentsEnded(ends=tuple(ends)))
            case _:
                raise AssertionError(command)


async def performed(services: Services, run_id: str, action: Any, path: str = "") -> StepResult:
    step_input = StepInput(run_id=run_id, path=path, action=action)
    return await perform_metered(step_input, services)


async def open_summary(services: Services, summary: RunRecord) -> None:
    await performed(services, summary.run_id, OpenSummary(step=1))


async def on_document(
    services: Services, summary: RunRecord, index: int, action: DocumentAction
) -> Observation:
    """Perform one step of the child that reads a document."""
    return (await performed(services, summary.run_id, action, f"s001c{index}")).observation


async def read_document(services: Services, summary: RunRecord, index: int) -> SubagentEnd:
    """Run the child that reads a document to its end."""
    place = SubagentPlace(run_id=summary.run_id, path=f"s001c{index}")
    end: SubagentEnd = await drive(services, summary.run_id, DocumentReader(place), place.path)
    return end


async def start_reading(services: Services, summary: RunRecord, index: int, windows: int = 1) -> Observation:
    """Open a document and read its first windows, as a child."""
    await on_document(services, summary, index, OpenDocument())
    return await on_document(services, summary, index, ReadWindows(first=0, end=windows))


async def merge(services: Services, summary: RunRecord, step: int = 3) -> Observation:
    return (await performed(services, summary.run_id, MergeSummary(step=step))).observation


async def finish(services: Services, summary: RunRecord) -> Observation:
    """Merge and commit the results of the children."""
    await merge(services, summary)
    return (await performed(services, summary.run_id, CommitSummary(step=4, merge_step=3))).observation


async def summarise(services: Services, summary: RunRecord) -> SummaryView:
    await drive(services, summary.run_id, DocumentSummary())
    return await view_summary(summary, services, ANNA)


def result_of(view: SummaryView) -> SummaryResult:
    assert view.result is not None
    return view.result
