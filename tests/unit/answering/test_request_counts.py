"""Tests for the number of service calls per question (contracts.md, section 8)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shared.access.user_limit_store import UserLimitStore
from shared.answering.control import ControlStore
from shared.answering.effects import perform_metered
from shared.answering.inline import run_to_end
from shared.answering.runs import begin_run
from shared.answering.script import RunEnd
from shared.answering.steps import StepFields, StepInput
from shared.conversations.thread_store import ThreadStore
from shared.quality.store import QualityStore
from shared.runs.events import CitationEvent, CompleteEvent, RunEvent, TokenEvent
from shared.runs.log_lines import LogSlice
from shared.runs.models import ChatRequest
from shared.runs.run_store import RunStore
from shared.tools.registry import block_search
from shared.wiring import Services
from tests.fakes.dying import Death, Mortal
from tests.fakes.models import ScriptedChatModel
from tests.fakes.run_log import InMemoryRunLog
from tests.fakes.services import fake_settings
from tests.scripts import next_action, observe, start, tokens_of
from tests.world import ANNA, World, corpus_services, plan


@dataclass
class Counts:
    """The recorded calls by kind of service."""

    storage: Death = field(default_factory=lambda: Death(at=1_000_000))
    searches: Death = field(default_factory=lambda: Death(at=1_000_000))
    rows: Death = field(default_factory=lambda: Death(at=1_000_000))

    def over(self, services: Services) -> Services:
        """Return the same services with counted calls. Appends and reads of the log count as stream
        operations.
        """

        def counted(port: Any) -> Any:
            return Mortal(port, (), self.storage)

        counted_ports: dict[str, Any] = {
            "content_index": Mortal(services.content_index, (), self.searches),
            "documents_index": Mortal(services.documents_index, (), self.searches),
            "documents": Mortal(services.documents, (), self.rows),
            "blobs": counted(services.blobs),
            "queues": counted(services.queues),
            "run_log": Mortal(services.run_log, ("create",), self.storage),
            "runs": RunStore(counted(services.runs._table)),
            "threads": ThreadStore(counted(services.threads._table)),
            "quality": QualityStore(counted(services.quality._table)),
            "user_limits": UserLimitStore(counted(services.user_limits._table)),
            "subagent_control": ControlStore(counted(services.subagent_control._table)),
        }
        return replace(services, **counted_ports)


async def test_a_fact_takes_three_activities_two_model_calls_and_few_requests() -> None:
    question = "At what pressure does the pump run?"
    cited = '<answer>15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'
    model = ScriptedChatModel(plan(standalone_question="", search_queries=(), todo=()), cited)
    counts = Counts()
    services = counts.over(await corpus_services(chat_model=model, settings=fake_settings()))
    request = await begin_run(ChatRequest(question=question), ANNA, services)
    state, activities = start(), 0
    while not isinstance(action := next_action(state), RunEnd):
        assert isinstance(action, StepFields)
        values = {"run_id": request.run_id, "action": action.model_dump(), "tokens": tokens_of(state)}
        result = await perform_metered(StepInput.model_validate(values), services)
        state, activities = observe(state, result.observation, result.tokens), activities + 1
    assert activities == 3
    assert len(model.prompts) == 2
    assert len(counts.searches.calls) <= 7, counts.searches.calls
    # Three documents are shown; each row is read by the search step and by the turn.
    assert len(counts.rows.calls) <= 6, counts.rows.calls
    # Four calls charge the two model calls, each when it starts and again when it ends.
    assert len(counts.storage.calls) <= 28, Counter(counts.storage.calls)


class CountedLog(InMemoryRunLog):
    """A log that counts appends and reads, and separately appends that contain only text and citations."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[str] = []
        self.streamed = 0

    async def append(self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None) -> int:
        if all(isinstance(event, TokenEvent | CitationEvent) for event in events):
            self.streamed += 1
        else:
            self.operations.append("append " + " ".join(event.name for event in events))
        return await super().append(run_id, events, at_offset=at_offset)

    async def read(self, run_id: str, offset: int = 0) -> LogSlice:
        self.operations.append("read")
        return await super().read(run_id, offset)


async def test_a_plain_question_takes_few_operations_on_its_journal_and_blobs() -> None:
    cited = '<answer>15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'
    model = ScriptedChatModel(plan(standalone_question="", search_queries=(), todo=()), cited)
    log, blobs = CountedLog(), Death(at=1_000_000)
    services = await corpus_services(chat_model=model, settings=fake_settings(), run_log=log)
    services = blobs.mortal(services, {"blobs": ()})
    request = await begin_run(ChatRequest(question="At what pressure does the pump run?"), ANNA, services)
    await run_to_end(request.run_id, services)
    assert isinstance(log.lines(request.run_id)[-1], CompleteEvent)
    assert len(log.operations) <= 12, log.operations
    kinds = Counter(call.rpartition(".")[2].split("_")[0] for call in blobs.calls)
    assert sum(count for kind, count in kinds.items() if kind in ("write", "create")) <= 3, blobs.calls
    assert not any(kind in ("read", "find", "list") for kind in kinds), blobs.calls


async def test_a_first_search_takes_at_most_eight_requests_and_reads_only_rows_of_what_it_shows() -> None:
    world = World(engine=True)
    for number in range(60):  # more than a ranking holds, so that each kind of request is needed
        texts = [f"Pump {number} runs at {number + part} bar in part {part}." for part in range(4)]
        await world.add(f"pump-{number}", *texts, title=f"Pump {number}")
    searches, rows = Death(at=1_000_000), Death(at=1_000_000)
    counted: dict[str, Any] = {
        "content_index": Mortal(world.services.content_index, (), searches),
        "documents_index": Mortal(world.services.documents_index, (), searches),
        "documents": Mortal(world.services.documents, (), rows),
    }
    services = replace(world.services, **counted)
    hits = await block_search(services, ANNA).search(["At what pressure does pump 7 run?"], 10, {})
    assert len(searches.calls) <= 8, Counter(searches.calls)
    assert len(rows.calls) == len({hit.doc_id for hit in hits})
