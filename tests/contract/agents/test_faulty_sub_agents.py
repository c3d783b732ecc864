"""Sub-agents through the real SDK with a faulty model: they end in time and keep their budget."""

import time

import pytest

from local.model_server.knobs import FAULTS
from shared.platform.calls import model_endpoint
from shared.platform.language_models.chat_model import OpenAIChatModel
from shared.wiring import Connections
from tests.contract.clients.conftest import to_models
from tests.fakes.services import fake_settings
from tests.servers import ModelServer
from tests.unit.subagents.stored_child import StoredChild, stored_child

__all__ = ["to_models"]

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

# A late model, a model that stops in the middle, and a model that writes too much. Each test takes the full
# SECONDS.
EVERY_CHANGE = ("ttft=3000", "stall=3", "overtalk=2000")
SECONDS = 2.5
SLACK_S = 15.0  # allows for a busy machine, and detects hangs, which last for ever
ONE_CALL = 2_500  # the maximum number of tokens of a prompt of these tests and its longest reply


@pytest.mark.parametrize(
    "fault",
    [pytest.param(fault, marks=() if fault in EVERY_CHANGE else pytest.mark.nightly) for fault in FAULTS],
)
async def test_it_ends_in_time_and_within_its_budget(
    fault: str, to_models: Connections, model_server: ModelServer
) -> None:
    world = await child_at_work(to_models, f"{model_server.chat_model}@{fault}", SECONDS)
    began = time.perf_counter()
    end = await world.run()
    assert time.perf_counter() - began < SECONDS + SLACK_S
    state = await world.state()
    # On a busy machine, the time limit may be reached before the first search has ended.
    assert state.hits or {"TOOL_FAILED", "TIME_OUT"} & set(state.warnings)
    assert (end.tokens or 0) <= world.task.budget.max_child_tokens + ONE_CALL
    assert end.cost_usd <= world.task.budget.max_child_cost_usd
    assert end.turns <= world.task.budget.max_child_turns
    proved = [finding for finding in state.findings if finding.proofs]
    assert end.status == "failed" or proved
    assert end.status == "done" or state.warnings


@pytest.mark.parametrize("knobs", ["", "@without=tools+json_schema+json_object+stream_options+system,fenced"])
async def test_without_a_fault_it_is_done(
    to_models: Connections, model_server: ModelServer, knobs: str
) -> None:
    world = await child_at_work(to_models, f"{model_server.chat_model}{knobs}", 30)
    assert (await world.run()).status == "done"
    assert (await world.state()).warnings == ()


async def child_at_work(to_models: Connections, name: str, seconds: float) -> StoredChild:
    model = OpenAIChatModel(to_models.model, name, model_endpoint(fake_settings()))
    return await stored_child(model, "comparator", doc_ids=("old", "new"), seconds=seconds)
