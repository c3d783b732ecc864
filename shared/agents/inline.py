"""The inline driver: the same loop in one process, for library use, evaluations and tests."""

import asyncio

from shared.agents.effects import perform
from shared.core.loop import LoopState, next_action, observe, start
from shared.models.steps import EndRun, StepInput
from shared.services import Services


async def run_to_end(run_id: str, services: Services) -> LoopState:
    """Run a question whose request lies in working memory until its run is closed.

    Raises:
        DefectError: a bug; the durable driver would report it to the reader instead.
    """
    state = start()
    while not isinstance(action := next_action(state), EndRun):
        await asyncio.sleep(action.delay_s)
        observation = await perform(StepInput(run_id=run_id, action=action), services)
        state = observe(state, observation)
    return state
