"""Tests for runs with sub-agents whose worker dies at any append: readers see the journal's state."""

from collections import Counter
from collections.abc import AsyncGenerator

import pytest
from pydantic import BaseModel

from shared.answering.effects import perform_metered
from shared.answering.profiles import Claim, DocReaderReport, Proof
from shared.answering.runs import begin_run, view_run
from shared.answering.script import Children, MainAgent, RunEnd, Script, Step, run_agent
from shared.answering.shown_answer import shown_citations, shown_text
from shared.answering.steps import StepInput, StepResult, SubagentsEnded
from shared.answering.sub_agent import SubAgent
from shared.answering.subagent_models import SubagentEnd, SubagentStart
from shared.platform.language_models.models import CallLimits, ModelUsage, Prompt
from shared.runs.events import DoneLine, RunEvent, SubagentStatus, is_terminal
from shared.runs.journal import read_journal
from shared.runs.models import ChatRequest, RunView
from shared.runs.run_state import fold
from shared.runs.run_store import owned_run
from shared.wiring import Services
from tests.fakes.dying import Died
from tests.fakes.services import fake_settings
from tests.unit.answering.test_crashes import DyingLog
from tests.unit.subagents.stored_child import calls
from tests.unit.subagents.test_races_with_sub_agents import DelegatingModel
from tests.world import ANNA, corpus_services

DOCUMENTS = {"manual": "The pump runs at 15 bar.", "report-2024": "Revenue was 53 million euros."}
DELEGATES = calls(
    (
        "delegate",
        '{"task": "Find the proof.", "profile": "doc_reader", "doc_ids": ["manual", "report-2024"]}',
    )
)


class DividingModel(DelegatingModel):
    """A model whose two sub-agents read one document each and report its sentence."""

    delegates = DELEGATES

    async def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        assert output is DocReaderReport
        ((doc_id, quote),) = [(name, text) for name, text in DOCUMENTS.items() if text in prompt.user]
        claim = Claim(text=f"{doc_id} says so.", proofs=(Proof(doc_id=doc_id, quote=quote),))
        yield DocReaderReport(sections=(), claims=(claim,), uncertainty=()).model_dump_json()


# the model, and the number of sub-agents that it starts
MODELS = {"searching": (DelegatingModel, 1), "dividing": (DividingModel, 2)}
APPENDS = 22  # of the run and its sub-agents, without creating the journal; equal for both models


class WatchedLog(DyingLog):
    """A log that also keeps the events received by a reader who follows the run from its start."""

    def __init__(self, at: int, *, is_behind: bool) -> None:
        super().__init__(at, is_behind=is_behind)
        self.received: list[RunEvent] = []
        self.run_id = ""

    def receive(self) -> list[RunEvent]:
        """Read all public events, check that received ones are unchanged, and return them."""
        public = self.events(self.run_id)
        assert public[: len(self.received)] == self.received  # received events never change
        self.received = public
        return public


async def require_agreement(services: Services, log: WatchedLog) -> None:
    """Check that the state in the journal matches the events that the reader has received."""
    received = log.receive()
    journal = await read_journal(services.run_log, services.blobs, log.run_id)
    state = fold(journal.events)
    assert state.has_ended == any(map(is_terminal, received))
    if state.answer is not None:
        assert shown_text(received) == state.answer.text
        assert shown_citations(received) == list(state.answer.citations)
    completed = Counter(
        (line.step, line.child, line.turn) for line in log.lines(log.run_id) if isinstance(line, DoneLine)
    )
    assert set(completed.values()) <= {1}


async def perform(services: Services, log: WatchedLog, step: Step, path: str = "") -> StepResult:
    """Perform a step, and repeat it if its worker died, as the host does."""
    step_input = StepInput(run_id=log.run_id, path=path, action=step.action, tokens=step.tokens)
    while True:
        try:
            return await perform_metered(step_input, services)
        except (Died, BaseExceptionGroup):
            await require_agreement(services, log)


async def run_child(services: Services, log: WatchedLog, start: SubagentStart) -> SubagentEnd:
    script: Script[SubagentEnd] = run_agent(SubAgent(start))
    result: StepResult | None = None
    while True:
        try:
            command = script.send(result)
        except StopIteration as ended:
            end: SubagentEnd = ended.value
            return end
        assert isinstance(command, Step)
        result = await perform(services, log, command, start.path)


async def run(services: Services, log: WatchedLog) -> tuple[RunEnd, list[SubagentEnd]]:
    """Run the question to its end with one sub-agent at a time, so that appends have a fixed order."""
    script: Script[RunEnd] = run_agent(MainAgent())
    result: StepResult | None = None
    ends: list[SubagentEnd] = []
    while True:
        try:
            command = script.send(result)
        except StopIteration as ended:
            end: RunEnd = ended.value
            return end, ends
        if isinstance(command, Children):
            ends = [await run_child(services, log, start) for start in command.starts]
            result = StepResult(observation=SubagentsEnded(ends=tuple(ends)))
        else:
            assert isinstance(command, Step)
            result = await perform(services, log, command)


async def start_run(log: WatchedLog, model: DelegatingModel) -> Services:
    settings = fake_settings(
        subagents_enabled=True, max_total_latency_ms=600_000, plan_timeout_s=300, budget_preset="default"
    )
    services = await corpus_services(chat_model=model, run_log=log, settings=settings)
    request = await begin_run(ChatRequest(question="At what pressure?"), ANNA, services)
    log.run_id = request.run_id
    return services


async def completed(services: Services, log: WatchedLog) -> RunView:
    end, ends = await run(services, log)
    await require_agreement(services, log)
    assert end.outcome == "completed"
    assert {child.status for child in ends} == {"done"}
    return await view_run(await owned_run(log.run_id, ANNA, services.runs), services, ANNA)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.answering.attempts.POLL_S", 0.01)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize("at", range(1, APPENDS + 1))
async def test_crash_at_any_append_leaves_one_answer_with_all_findings(
    at: int, is_behind: bool, kind: str
) -> None:
    log = WatchedLog(at, is_behind=is_behind)
    model, children = MODELS[kind]
    services = await start_run(log, model())
    view = await completed(services, log)
    assert log.has_died
    assert view.status == "completed"
    assert view.answer is not None
    assert shown_text(log.received) == view.answer.text
    assert [(child.status, child.claims, child.proved) for child in view.sub_agents] == [
        ("done", 1, 1)
    ] * children
    assert [is_terminal(event) for event in log.received].count(True) == 1
    ends = [
        event.child for event in log.received if isinstance(event, SubagentStatus) and event.phase == "ended"
    ]
    assert ends == list(range(children))
    assert is_terminal(log.lines(log.run_id)[-1])


@pytest.mark.parametrize("model", [DelegatingModel, DividingModel])
async def test_run_with_sub_agents_takes_this_many_appends(model: type[DelegatingModel]) -> None:
    log = WatchedLog(1000, is_behind=False)
    services = await start_run(log, model())
    await completed(services, log)
    assert log.appends == APPENDS
