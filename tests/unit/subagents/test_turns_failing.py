"""Tests for turns of a sub-agent that fail or exhaust its budget: it ends and keeps its results."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from shared.platform.errors import (
    AuthenticationError,
    CallTimeoutError,
    DependencyError,
    GroundworkError,
    ModelFixableError,
    OutputCutError,
    RateLimitError,
)
from shared.platform.language_models.models import CallLimits, ModelUsage, Prompt
from shared.platform.search import SearchPage, SearchRequest
from tests.fakes.search_index import InMemorySearchIndex
from tests.unit.subagents.child_models import BreakingModel, CountedModel
from tests.unit.subagents.stored_child import GOOD, READ, READY, SEARCH, THREE, evidence, proof, stored_child


async def test_a_search_that_fails_is_made_again_and_the_model_is_not_asked_again() -> None:
    class Failing(InMemorySearchIndex):
        fails = False

        async def search(self, request: SearchRequest) -> SearchPage:
            if self.fails:
                raise DependencyError("search is down")
            return await super().search(request)

    content = Failing("block_id")

    model = CountedModel(SEARCH, READY, GOOD)
    world = await stored_child(model, content_index=content)
    assert (await world.take()).status == "go_on"
    content.fails = True
    failed = await world.take(2)
    assert (failed.status, failed.retryable, failed.warnings) == ("failed", True, ("TOOL_FAILED",))
    assert len(model.conversations) == 1
    content.fails = False
    assert (await world.take(2, attempt=1)).status == "done"
    uses = (await world.state()).tool_uses
    assert [(use.success, use.error_type) for use in uses[1:]] == [(False, "NetworkError"), (True, None)]


async def test_first_passages_that_cannot_be_had_fail_the_turn() -> None:
    class Down(InMemorySearchIndex):
        async def search(self, request: SearchRequest) -> SearchPage:
            raise DependencyError("search is down")

    world = await stored_child(CountedModel(), content_index=Down("block_id"))
    result = await world.take()
    assert (result.status, result.retryable, result.warnings) == ("failed", True, ("TOOL_FAILED",))


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (RateLimitError("slow down"), True),
        (DependencyError("HTTP 500"), True),
        (AuthenticationError("refused"), False),
    ],
)
async def test_a_model_that_cannot_be_asked_fails_the_turn(error: GroundworkError, retryable: bool) -> None:
    world = await stored_child(CountedModel(error))
    result = await world.take()
    assert (result.status, result.retryable, result.warnings) == ("failed", retryable, ("MODEL_FAILED",))
    assert result.tokens == 0
    assert (await world.state()).status == "failed"


@pytest.mark.parametrize("error", [CallTimeoutError("late"), ModelFixableError("said nothing")])
async def test_a_turn_of_work_that_brings_nothing_still_leaves_a_report(error: GroundworkError) -> None:
    world = await stored_child(CountedModel(error, GOOD))
    result = await world.take()
    assert (result.status, result.findings, result.warnings) == ("done", 1, ("MODEL_FAILED",))
    assert (result.tokens or 0) > 1600  # includes the tokens of failed calls


@pytest.mark.parametrize(
    ("error", "status", "warning"),
    [
        (CallTimeoutError("late"), "partial", "TIME_OUT"),
        (OutputCutError("cut"), "partial", "TOKENS_SPENT"),
        (DependencyError("lost"), "failed", "MODEL_FAILED"),
        (ModelFixableError("filtered"), "failed", "REPORT_UNREADABLE"),
    ],
)
async def test_a_report_that_breaks_off_leaves_what_was_whole(
    error: GroundworkError, status: str, warning: str
) -> None:
    world = await stored_child(BreakingModel(READY, THREE, error=error, share=0.75))
    result = await world.take()
    assert (result.status, result.findings) == (status, 2)
    assert warning in result.warnings
    assert [finding.text for finding in (await world.state()).findings] == [
        "The limit is 250 bar.",
        "It was 230 bar.",
    ]


async def test_who_takes_over_adds_to_what_was_found() -> None:
    model = BreakingModel(READY, THREE, error=DependencyError("lost"), share=0.4)
    world = await stored_child(model)
    await world.take()
    world.services.chat_model.stream_output = CountedModel(READ).stream_output  # type: ignore[method-assign]
    result = await world.take(attempt=1, closing=True, profile="doc_reader")
    assert (result.status, result.warnings) == ("done", ("PROFILE_REDUCED",))
    state = await world.state()
    assert state.profile == "doc_reader"
    assert [finding.text for finding in state.findings] == ["The limit is 250 bar.", "The limit is 230 bar."]


async def test_a_report_that_is_none_can_be_asked_for_again() -> None:
    world = await stored_child(CountedModel(READY, "I cannot do that."))
    result = await world.take()
    assert (result.status, result.retryable, result.warnings) == ("failed", True, ("REPORT_UNREADABLE",))


async def test_statements_without_a_proof_are_told_of() -> None:
    made_up = evidence(("It takes 9 bar.", (proof("new", "It takes 9 bar, for sure."),)))
    world = await stored_child(CountedModel(READY, made_up))
    result = await world.take()
    assert result.warnings == ("PROOF_MISSING",)
    (finding,) = (await world.state()).findings
    assert (finding.proofs, finding.confidence) == ((), 0.0)


async def test_nothing_found_is_no_failure_and_costs_no_report() -> None:
    model = CountedModel(READY)
    world = await stored_child(model, request={"project_id": "pumps"})
    result = await world.take()
    assert (result.status, result.warnings) == ("done", ("NOTHING_FOUND",))
    assert model.prompts == []


async def test_a_budget_of_few_tokens_is_kept() -> None:
    model = CountedModel(GOOD)
    world = await stored_child(model, budget={"max_child_tokens": 2500})
    result = await world.take()
    assert result.status == "done"
    assert model.conversations == []  # the budget doesn't suffice for a work turn
    assert model.limits[0].max_output_tokens < 1800


async def test_without_tokens_for_a_report_there_is_none() -> None:
    model = CountedModel()
    world = await stored_child(model, budget={"max_child_tokens": 600})
    result = await world.take()
    assert (result.status, result.warnings, result.tokens) == ("partial", ("TOKENS_SPENT",), 0)
    assert (await world.state()).hits  # its passages are kept


async def test_without_money_there_is_no_call() -> None:
    world = await stored_child(CountedModel(), budget={"max_child_cost_usd": 0.0001})
    assert (await world.take()).warnings == ("COST_SPENT",)


async def test_a_turn_begun_too_late_ends_at_once() -> None:
    world = await stored_child(CountedModel(), seconds=0.3)
    result = await world.take()
    assert (result.status, result.warnings) == ("partial", ("TIME_OUT",))


@pytest.mark.parametrize("hangs_in", ["turn", "report", "search", "storage"])
async def test_it_ends_before_its_deadline_whatever_hangs(hangs_in: str) -> None:
    async def for_ever(*_: Any, **__: Any) -> Any:
        await asyncio.sleep(3600)

    async def silent(*_: Any) -> AsyncGenerator[str, None]:
        await asyncio.sleep(3600)
        yield ""

    model = CountedModel(READY, GOOD)
    world = await stored_child(model, seconds=1.6)
    replaced: dict[str, tuple[object, str, Callable[..., Any]]] = {
        "turn": (model, "subagent_turn", for_ever),
        "report": (model, "stream_output", silent),
        "search": (world.services.content_index, "search", for_ever),
        "storage": (world.services.blobs, "write", for_ever),
    }
    setattr(*replaced[hangs_in])
    result = await world.take()
    assert result.status in ("partial", "failed")
    # Hanging calls last an hour, so a few seconds of scheduling delay don't matter.
    assert datetime.now(UTC) < world.task.deadline + timedelta(seconds=20)


async def test_a_model_that_writes_without_end_is_not_listened_to() -> None:
    class Endless(CountedModel):
        async def stream_output(
            self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
        ) -> AsyncGenerator[str | ModelUsage, None]:
            yield THREE.model_dump_json()[:-1]
            while True:
                yield " " * 1000

    world = await stored_child(Endless(READY))
    result = await world.take()
    assert (result.status, result.findings) == ("partial", 3)
    assert "TOKENS_SPENT" in result.warnings


async def test_a_model_that_is_down_ends_it_after_a_retry_and_a_smaller_profile() -> None:
    errors = [DependencyError("HTTP 503") for _ in range(9)]
    model = CountedModel(*errors)
    world = await stored_child(model)
    end = await world.run()
    assert (end.status, end.turns, end.tokens) == ("failed", 0, 0)
    assert (len(model.conversations), len(model.prompts)) == (2, 1)
    assert world.phases().count("failed") == 3


async def test_what_a_repetition_mends_is_not_told() -> None:
    world = await stored_child(CountedModel(DependencyError("HTTP 503"), READY, GOOD))
    end = await world.run()
    assert (end.status, (await world.state()).warnings) == ("done", ())


async def test_what_a_repetition_does_not_mend_is_told_once() -> None:
    world = await stored_child(CountedModel(DependencyError("HTTP 503"), DependencyError("HTTP 503"), READ))
    end = await world.run()
    assert end.status == "done"
    assert (await world.state()).warnings == ("MODEL_FAILED", "PROFILE_REDUCED")


async def test_a_second_attempt_is_shown_all_that_the_first_one_was() -> None:
    model = CountedModel(SEARCH, READY, DependencyError("lost"), READY, GOOD)
    world = await stored_child(model)
    await world.take()
    assert (await world.take(2)).status == "failed"
    assert (await world.take(2, attempt=1)).status == "done"
    first, second = model.prompts
    assert second.user == first.user
    assert model.conversations[2] == model.conversations[1]
