"""Tests for turns of a sub-agent: their effects and stored state, also if a turn is repeated."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.answering.subagent_budget import CRASH_GRACE
from shared.platform.errors import DependencyError
from shared.platform.language_models.models import ModelTurn
from shared.runs.agents import AgentDefinition
from shared.runs.events import SubagentStatus
from tests.unit.subagents.child_models import CountedModel
from tests.unit.subagents.stored_child import (
    FILTER,
    GOOD,
    PRESSURE,
    READ,
    READY,
    RUN,
    SEARCH,
    STEP,
    stored_child,
)


async def test_a_turn_without_calls_ends_in_the_report() -> None:
    world = await stored_child(CountedModel(READY, GOOD))
    result = await world.take()
    assert (result.status, result.findings, result.tokens) == ("done", 1, 1050 + 1600)
    state = await world.state()
    assert (state.status, state.turns_ended) == ("done", 1)
    assert state.findings[0].proofs[0].block_id == "new-1"
    assert state.started_at is not None
    assert state.ended_at is not None


async def test_sub_agents_of_an_agent_ask_its_model() -> None:
    own = CountedModel(READY, GOOD)
    definition = {"name": "a", "description": "a", "instructions": "a", "access": ["*"], "model": "small"}
    request = {"agent": AgentDefinition.model_validate(definition)}
    world = await stored_child(CountedModel(), request=request, other_models={"small": own}.__getitem__)
    assert (await world.take()).status == "done"
    assert len(own.conversations) == 1


async def test_money_is_counted_by_the_prices_of_the_settings() -> None:
    world = await stored_child(CountedModel(READY, GOOD))
    result = await world.take()
    assert result.cost_usd == pytest.approx((2500 * 0.75 + 150 * 4.5) / 1_000_000)


async def test_a_turn_with_calls_goes_on_and_the_next_one_knows_their_results() -> None:
    model = CountedModel(SEARCH, READY, GOOD)
    world = await stored_child(model)
    assert (await world.take()).status == "go_on"
    assert (await world.take(2)).status == "done"
    messages = model.conversations[1]
    assert [message.role for message in messages] == ["system", "user", "assistant", "tool"]
    assert "<document " in messages[3].text
    assert FILTER in model.prompts[0].user


async def test_a_closing_turn_reports_at_once() -> None:
    model = CountedModel(GOOD)
    world = await stored_child(model)
    assert (await world.take(closing=True)).status == "done"
    assert model.conversations == []


async def test_documents_that_fit_whole_are_read_whole_and_reported_at_once() -> None:
    model = CountedModel(READ)
    world = await stored_child(model, "doc_reader", doc_ids=("old",), pages=5)
    assert (await world.take()).status == "done"
    assert model.conversations == []
    assert all(f"part {page}" in model.prompts[0].user for page in range(5))


async def test_of_a_long_document_passages_from_everywhere_are_read() -> None:
    model = CountedModel(READY, READ)
    world = await stored_child(model, "doc_reader", doc_ids=("old",), pages=400)
    await world.take()
    pages = [hit.page_number or 0 for hit in (await world.state()).hits]
    assert pages == sorted(pages)
    assert min(pages) <= 2
    assert max(pages) == 402
    assert PRESSURE["old"] in model.prompts[0].user


async def test_every_document_of_the_task_is_represented() -> None:
    world = await stored_child(CountedModel(READY, READ), "comparator", doc_ids=("old", "new"))
    await world.take()
    assert {hit.doc_id for hit in (await world.state()).hits} == {"old", "new"}


async def test_it_sees_its_task_and_nothing_of_the_conversation() -> None:
    model = CountedModel(READY, GOOD)
    world = await stored_child(model)
    await world.take()
    prompt_text = "".join(message.text for message in model.conversations[0]) + model.prompts[0].user
    assert "<task>What is the maximum pressure of the press?</task>" in prompt_text
    assert "And of the press?" not in prompt_text


async def test_a_turn_taken_twice_is_one_and_is_paid_for_once() -> None:
    model = CountedModel(SEARCH, READY, GOOD)
    world = await stored_child(model)
    first = await world.take()
    assert await world.take() == first
    second = await world.take(2)
    assert await world.take(2) == second
    assert await world.take() == first
    assert (await world.state()).tokens == second.tokens == 2 * 1050 + 1600


async def test_a_failed_attempt_that_is_delivered_twice_fails_once() -> None:
    model = CountedModel(DependencyError("down"), READY, GOOD)
    world = await stored_child(model)
    failed = await world.take()
    assert await world.take() == failed
    assert (await world.take(attempt=1)).status == "done"


async def test_a_crash_after_the_calls_does_not_make_them_again() -> None:
    class Dying(CountedModel):
        dies = False

        async def subagent_turn(self, *args: Any, **kwargs: Any) -> ModelTurn:
            if self.dies:
                raise RuntimeError("the process dies here")
            return await super().subagent_turn(*args, **kwargs)

    model = Dying(SEARCH, READY, GOOD)
    world = await stored_child(model)
    assert (await world.take()).status == "go_on"
    model.dies = True
    with pytest.raises(RuntimeError):
        await world.take(2)
    model.dies = False
    result = await world.take(2, attempt=1)
    assert (result.status, result.warnings) == ("done", ("CRASHED",))
    assert [use.turn for use in (await world.state()).tool_uses] == [1, 2]


async def test_a_call_that_was_made_before_is_not_made_again_and_leads_to_the_report() -> None:
    world = await stored_child(CountedModel(SEARCH, SEARCH, GOOD))
    end = await world.run()
    assert (end.status, end.turns) == ("done", 2)
    assert [use.success for use in (await world.state()).tool_uses] == [True, True, False]


async def test_time_that_was_lost_with_a_worker_is_given_back() -> None:
    model = CountedModel(SEARCH, READY, GOOD)
    world = await stored_child(model, seconds=0.4)
    status = SubagentStatus(phase="turn", turn=1, passages=0, findings=0, proved=0)
    lost = {"step": STEP, "child": 0, "at": datetime.now(UTC) - timedelta(seconds=8)}
    await world.services.run_log.append(RUN, [status.model_copy(update=lost)])
    result = await world.take()
    assert result.status == "go_on"
    assert 8 <= result.lost_s < CRASH_GRACE.total_seconds()
    assert (await world.take(2)).lost_s == pytest.approx(result.lost_s, abs=0.001)  # and nothing more


async def test_no_more_than_its_share_of_lost_time_is_given_back() -> None:
    world = await stored_child(CountedModel(READY, GOOD))
    status = SubagentStatus(phase="turn", turn=1, passages=0, findings=0, proved=0)
    lost = {"step": STEP, "child": 0, "at": datetime.now(UTC) - timedelta(hours=1)}
    await world.services.run_log.append(RUN, [status.model_copy(update=lost)])
    assert (await world.take()).lost_s == CRASH_GRACE.total_seconds()
