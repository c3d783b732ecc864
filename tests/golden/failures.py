"""Scenarios of failures and cancellations."""

from shared.platform.errors import DependencyError, ModelFixableError
from tests.golden.answers import PRESSURE, PROVED
from tests.golden.scenario import plan, scenario
from tests.golden.scripted_model import Hang
from tests.golden.stage import Stage
from tests.golden.streams import ESTIMATED

DOWN = "The model is out of reach."
SECOND_S = 1.0


@scenario(inline=True)
async def unreadable_plan(stage: Stage) -> None:
    """Answer without a plan, because the model's plan is unreadable."""
    stage.hide(ESTIMATED)
    stage.model.script(plan=[ModelFixableError("garbage")], answer=[PROVED])
    await stage.ask(PRESSURE)


@scenario()
async def model_error_retried(stage: Stage) -> None:
    """Retry after the model was unreachable once."""
    stage.model.script(plan=[plan()], answer=[DependencyError(DOWN), PROVED])
    run_id = await stage.begin(PRESSURE)
    await stage.end_of(run_id, PRESSURE, advance_s=SECOND_S)


@scenario()
async def model_failure(stage: Stage) -> None:
    """End with an error, because the model stays unreachable."""
    stage.model.script(plan=[plan()], answer=[DependencyError(DOWN)] * 2)
    run_id = await stage.begin(PRESSURE)
    await stage.end_of(run_id, PRESSURE, advance_s=SECOND_S)


@scenario(inline=True)
async def refused_answer(stage: Stage) -> None:
    """End with an error, because the content filter blocks the answer."""
    stage.hide(ESTIMATED)
    stage.model.script(plan=[plan()], answer=[ModelFixableError("The content filter stopped the model.")] * 2)
    await stage.ask(PRESSURE)


@scenario(inline=True, max_total_tokens_per_request=900)
async def budget_exhausted(stage: Stage) -> None:
    """End with an error, because the token budget is exhausted."""
    await stage.ask(PRESSURE)


@scenario()
async def cancelled(stage: Stage) -> None:
    """Cancel a run while the model writes the answer."""
    stage.model.script(plan=[plan()], answer=[Hang()])
    run_id = await stage.begin(PRESSURE)
    await stage.until_hanging()
    await stage.cancel(run_id)
    await stage.cancel(run_id)
    await stage.end_of(run_id, PRESSURE)
