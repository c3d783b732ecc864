"""Turns of a sub-agent: what they do and store; taken twice, they are one."""

from typing import Any

import pytest

from shared.platform.errors import DependencyError
from shared.platform.search import SearchPage, SearchRequest
from tests.fakes.search_index import InMemorySearchIndex
from tests.unit.subagents.child_models import CountedModel
from tests.unit.subagents.child_world import (
    FILTER,
    GOOD,
    PRESSURE,
    READ,
    READY,
    SEARCH,
    child_world,
    evidence,
    proof,
)


async def test_a_turn_without_calls_ends_in_the_report() -> None:
    world = await child_world(CountedModel(READY, GOOD))
    result = await world.take()
    assert (result.status, result.findings, result.tokens) == ("done", 1, 1050 + 1600)
    state = await world.state()
    assert (state.status, state.turns_ended) == ("done", 1)
    assert state.findings[0].proofs[0].block_id == "new-0"
    assert state.started_at is not None
    assert state.ended_at is not None


async def test_money_is_counted_by_the_prices_of_the_settings() -> None:
    world = await child_world(CountedModel(READY, GOOD))
    result = await world.take()
    assert result.cost_usd == pytest.approx((2500 * 0.4 + 150 * 1.6) / 1_000_000)


async def test_a_turn_with_calls_goes_on_and_the_next_one_knows_their_results() -> None:
    model = CountedModel(SEARCH, READY, GOOD)
    world = await child_world(model)
    assert (await world.take()).status == "go_on"
    assert (await world.take(2)).status == "done"
    told = model.conversations[1]
    assert [message.role for message in told] == ["system", "user", "assistant", "tool"]
    assert "<document " in told[3].text
    assert FILTER in model.prompts[0].user


async def test_a_closing_turn_reports_at_once() -> None:
    model = CountedModel(GOOD)
    world = await child_world(model)
    assert (await world.take(closing=True)).status == "done"
    assert model.conversations == []


async def test_documents_that_fit_whole_are_read_whole_and_reported_at_once() -> None:
    model = CountedModel(READ)
    world = await child_world(model, "doc_reader", doc_ids=("old",), pages=5)
    assert (await world.take()).status == "done"
    assert model.conversations == []
    assert all(f"part {page}" in model.prompts[0].user for page in range(5))


async def test_of_a_long_document_passages_from_everywhere_are_read() -> None:
    model = CountedModel(READY, READ)
    world = await child_world(model, "doc_reader", doc_ids=("old",), pages=200)
    await world.take()
    pages = [hit.page_number or 0 for hit in (await world.state()).hits]
    assert pages == sorted(pages)
    assert min(pages) <= 2
    assert max(pages) == 202
    assert PRESSURE["old"] in model.prompts[0].user


async def test_every_document_of_the_task_is_represented() -> None:
    world = await child_world(CountedModel(READY, READ), "comparator", doc_ids=("old", "new"))
    await world.take()
    assert {hit.doc_id for hit in (await world.state()).hits[:2]} == {"old", "new"}


async def test_it_sees_its_task_and_nothing_of_the_conversation() -> None:
    model = CountedModel(READY, GOOD)
    world = await child_world(model)
    await world.take()
    said = "".join(message.text for message in model.conversations[0]) + model.prompts[0].user
    assert "<task>What is the maximum pressure of the press?</task>" in said
    assert "And of the press?" not in said


async def test_a_turn_taken_twice_is_one_and_is_paid_for_once() -> None:
    model = CountedModel(SEARCH, READY, GOOD)
    world = await child_world(model)
    first = await world.take()
    assert await world.take() == first
    second = await world.take(2)
    assert await world.take(2) == second
    assert await world.take() == second  # what came later stands
    assert (await world.state()).tokens == second.tokens == 2 * 1050 + 1600


async def test_a_failed_attempt_that_is_delivered_twice_fails_once() -> None:
    model = CountedModel(DependencyError("down"), READY, GOOD)
    world = await child_world(model)
    failed = await world.take()
    assert await world.take() == failed
    assert (await world.take(attempt=1)).status == "done"


async def test_a_crash_after_the_model_spoke_does_not_ask_it_again() -> None:
    class Crashing(InMemorySearchIndex):
        crashes = False

        async def search(self, request: SearchRequest) -> SearchPage:
            if self.crashes:
                raise RuntimeError("the process dies here")
            return await super().search(request)

    content = Crashing("block_id")
    model = CountedModel(SEARCH, READY, GOOD)
    world = await child_world(model, content_index=content)
    await world.services.content_index.search(SearchRequest())
    stored = world.services.blobs.write

    async def dying(container: str, name: str, content: bytes, **more: Any) -> None:
        await stored(container, name, content, **more)
        if name.endswith("-transcript.json") and b"call-0" in content:
            raise RuntimeError("the process dies here")

    world.services.blobs.write = dying  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        await world.take()
    world.services.blobs.write = stored  # type: ignore[method-assign]
    result = await world.take(attempt=1)
    assert (result.status, result.tokens) == ("go_on", 1050)
    assert result.warnings == ("CRASHED",)
    assert len(model.conversations) == 1


async def test_a_call_that_was_made_before_is_not_made_again_and_leads_to_the_report() -> None:
    world = await child_world(CountedModel(SEARCH, SEARCH, GOOD))
    end = await world.run()
    assert (end.status, end.turns) == ("done", 2)
    assert [use.success for use in (await world.state()).tool_uses] == [True, True, False]


async def test_who_was_still_looking_when_its_turns_ended_says_so_if_something_is_open() -> None:
    unproved = evidence(("The limit is 250 bar.", (proof("new"),)), ("It sings.", ()))
    for report, warnings in ((unproved, ("TURNS_SPENT",)), (GOOD, ())):
        world = await child_world(CountedModel(SEARCH, report), budget={"max_child_turns": 2})
        assert (await world.run()).status == "done"
        assert (await world.state()).warnings == warnings
