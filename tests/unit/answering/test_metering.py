"""Tests for the token budget of the main agent: calls are charged, or refused if it doesn't suffice."""

import asyncio

import pytest

from shared.answering.budget import Budget, BudgetSpentError
from shared.answering.effects import perform_metered
from shared.answering.inline import run_to_end
from shared.answering.metering import LEAST_OUTPUT, MeteredChatModel
from shared.answering.runs import begin_run, view_run
from shared.answering.script import RunEnd
from shared.answering.steps import StepFields, StepInput
from shared.platform.errors import DependencyError, ModelFixableError, OutputCutError
from shared.platform.language_models.models import CallLimits, Message, Prompt
from shared.platform.models import Model
from shared.platform.telemetry import report_usage
from shared.runs.models import ChatRequest
from shared.runs.run_store import owned_run
from tests.fakes.models import Reply, ScriptedChatModel
from tests.fakes.services import fake_settings
from tests.scripts import next_action, observe, start, tokens_of
from tests.world import ANNA, corpus_services, plan
from tests.world import Model as Scripted

LIMITS = CallLimits(timeout_s=5, max_output_tokens=500)
PROMPT = Prompt(name="plan", system="s" * 180, user="u" * 180)  # counts as 100 tokens
MESSAGES = (Message(role="system", text=PROMPT.system), Message(role="user", text=PROMPT.user))


class Said(Model):
    text: str


def metered(left: int, *replies: Reply) -> tuple[MeteredChatModel, Budget, ScriptedChatModel]:
    model, budget = ScriptedChatModel(*replies), Budget(left)
    return MeteredChatModel(model, budget), budget, model


async def read(model: MeteredChatModel) -> str:
    pieces = [piece async for piece in model.stream_turn(MESSAGES, (), LIMITS)]
    return "".join(piece for piece in pieces if isinstance(piece, str))


async def test_a_call_that_reports_nothing_is_counted_by_its_text() -> None:
    model, budget, _ = metered(10_000, "x" * 360)
    assert await read(model) == "x" * 360
    assert budget.tokens == 200


async def test_what_the_endpoint_reports_counts_instead() -> None:
    class Reporting(ScriptedChatModel):
        async def parse(self, prompt, output, limits):  # type: ignore[no-untyped-def]
            report_usage(777)
            return await super().parse(prompt, output, limits)

    budget = Budget(10_000)
    await MeteredChatModel(Reporting(Said(text="yes")), budget).parse(PROMPT, Said, LIMITS)
    assert budget.tokens == 777


async def test_with_too_few_left_no_call_is_made() -> None:
    model, budget, scripted_model = metered(100 + LEAST_OUTPUT - 1, Said(text="no"))
    with pytest.raises(BudgetSpentError):
        await model.parse(PROMPT, Said, LIMITS)
    assert scripted_model.prompts == []
    assert budget.tokens == 0


async def test_a_reply_may_be_as_long_as_what_is_left() -> None:
    class Looking(ScriptedChatModel):
        allowed = 0

        async def parse(self, prompt, output, limits):  # type: ignore[no-untyped-def]
            self.allowed = limits.max_output_tokens
            return await super().parse(prompt, output, limits)

    model = Looking(Said(text="yes"))
    await MeteredChatModel(model, Budget(350)).parse(PROMPT, Said, LIMITS)
    assert model.allowed == 250


async def test_a_model_that_goes_on_beyond_its_limit_is_read_no_further() -> None:
    model, budget, _ = metered(10_000, "x" * 50_000)  # a reply of 14,000 tokens, limited to 500
    with pytest.raises(OutputCutError):
        await read(model)
    assert 1211 <= budget.tokens <= 1216


async def test_a_reply_that_nobody_saw_counts_as_long_as_it_may_have_been() -> None:
    model, budget, _ = metered(10_000, ModelFixableError("It is no JSON."))
    with pytest.raises(ModelFixableError):
        await model.parse(PROMPT, Said, LIMITS)
    assert budget.tokens == 600


async def test_a_call_that_was_refused_costs_nothing() -> None:
    model, budget, _ = metered(10_000, DependencyError("Too many requests."))
    with pytest.raises(DependencyError):
        await model.parse(PROMPT, Said, LIMITS)
    assert budget.tokens == 0


async def test_a_reader_that_goes_away_pays_for_what_it_heard() -> None:
    model, budget, _ = metered(10_000, "x" * 5_000)
    pieces = model.stream_turn(MESSAGES, (), LIMITS)
    for _ in range(52):
        await anext(pieces)
    await pieces.aclose()
    assert 190 <= budget.tokens <= 205


async def test_a_run_without_tokens_for_its_answer_quotes_its_passages_and_asks_nobody() -> None:
    settings = fake_settings(
        subagents_enabled=False,
        max_total_tokens_per_request=1500,
        subagents_reserve_tokens=100,
        min_remaining_tokens_to_delegate=200,
    )
    prompt_names: list[str] = []

    def answer(prompt: Prompt) -> Reply:
        prompt_names.append(prompt.name)
        report_usage(1400)
        return plan()

    services = await corpus_services(settings=settings, chat_model=ScriptedChatModel(answer=answer))
    request = await begin_run(ChatRequest(question="At what pressure does the pump run?"), ANNA, services)
    state = await run_to_end(request.run_id, services)
    assert prompt_names == ["plan"]
    assert tokens_of(state) == 1400
    view = await view_run(await owned_run(request.run_id, ANNA, services.runs), services, ANNA)
    assert view.answer is not None
    assert view.answer.warnings
    assert view.answer.citations[0].quote == "The pump runs at 15 bar."


async def test_of_calls_at_once_none_is_made_that_the_others_leave_nothing_for() -> None:
    """Check that concurrent calls share one budget, as when passages are reranked in parallel batches."""

    class Slow(ScriptedChatModel):
        async def parse(self, prompt, output, limits):  # type: ignore[no-untyped-def]
            await asyncio.sleep(0.01)
            return await super().parse(prompt, output, limits)

    scripted_model, budget = Slow(Said(text="one"), Said(text="two")), Budget(800)
    model = MeteredChatModel(scripted_model, budget)
    results = await asyncio.gather(
        *(model.parse(PROMPT, Said, LIMITS) for _ in range(2)), return_exceptions=True
    )
    assert isinstance(results[0], Said)
    assert isinstance(results[1], BudgetSpentError)
    assert len(scripted_model.prompts) == 1
    # unused tokens were returned to the budget
    assert await model.parse(PROMPT, Said, LIMITS) == Said(text="two")


async def test_answer_is_marked_if_no_tokens_are_left_to_repair_its_quotation() -> None:
    wrong = 'It runs at 15 bar. <cite doc_id="manual" quote="The pump runs at 99 bar."/>'
    settings = fake_settings(
        subagents_enabled=False,
        max_total_tokens_per_request=20_000,
        subagents_reserve_tokens=100,
        min_remaining_tokens_to_delegate=200,
    )
    prompt_names: list[str] = []

    def answer(prompt: Prompt) -> Reply:
        prompt_names.append(prompt.name)
        report_usage({"plan": 1_000, "answer": 18_900}[prompt.name])
        return plan() if prompt.name == "plan" else wrong

    services = await corpus_services(settings=settings, chat_model=ScriptedChatModel(answer=answer))
    request = await begin_run(ChatRequest(question="At what pressure does the pump run?"), ANNA, services)
    await run_to_end(request.run_id, services)
    view = await view_run(await owned_run(request.run_id, ANNA, services.runs), services, ANNA)
    assert view.answer is not None
    assert view.answer.text.endswith(
        "*(Not verified, because the quotation was not found word for word: [1])*"
    )
    assert prompt_names == ["plan", "answer"]


class Killed(BaseException):
    """A worker crash that discards the result of the step."""


@pytest.mark.parametrize("where", ["plan", "answer"])
async def test_a_worker_that_dies_in_a_call_loses_no_cost(where: str) -> None:
    usual = Scripted(plan()).chat_model()
    died: list[str] = []

    def answer(prompt: Prompt) -> Reply:
        if prompt.name == where and not died:
            died.append(where)
            raise Killed
        assert usual._answer is not None
        return usual._answer(prompt)

    async def run(*, dies: bool) -> int:
        died[:] = [] if dies else [where]
        services = await corpus_services(chat_model=ScriptedChatModel(answer=answer))
        request = await begin_run(ChatRequest(question="At what pressure does the pump run?"), ANNA, services)
        state = start()
        while not isinstance(action := next_action(state), RunEnd):
            assert isinstance(action, StepFields)
            values = {"run_id": request.run_id, "action": action.model_dump(), "tokens": tokens_of(state)}
            step_input = StepInput.model_validate(values)
            try:
                result = await perform_metered(step_input, services)
            except Killed:
                result = await perform_metered(step_input, services)
            state = observe(state, result.observation, result.tokens)
        return tokens_of(state)

    plain, with_crash = await run(dies=False), await run(dies=True)
    read = {"plan": 1000, "answer": 2000}[
        where
    ]  # by the call at least; what it may have written comes on top
    assert with_crash >= plain + read
