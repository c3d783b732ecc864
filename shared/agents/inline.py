"""The inline driver: the same loop in one process, for library use, evaluations and tests."""

import asyncio

from shared.agents.effects import perform
from shared.core.loop import next_action, observe, start
from shared.core.loop_state import LoopState
from shared.models.steps import AwaitAnswer, EndRun, StepInput
from shared.services import Services


async def run_to_end(run_id: str, services: Services, state: LoopState | None = None) -> LoopState:
    """Run a question whose request lies in working memory until its run is closed, or waits for an answer.

    A run that waits (`waits(state)`) goes on when this is called again with its state after `observe` of
    AnswerArrived or AnswerTimedOut.

    Raises:
        DefectError: a bug; the durable driver would report it to the reader instead.
    """
    state = state or start()
    while not isinstance(action := next_action(state), EndRun | AwaitAnswer):
        await asyncio.sleep(action.delay_s)
        observation = await perform(StepInput(run_id=run_id, action=action), services)
        state = observe(state, observation)
    return state


def waits(state: LoopState) -> bool:
    """Whether a run waits for an answer of the person who asked."""
    return isinstance(next_action(state), AwaitAnswer)
