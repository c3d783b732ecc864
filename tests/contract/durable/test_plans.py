"""Random plans of nested task_all, retries, children and timers, compared with plain evaluation.

If the SDK and the executor disagree on a sequence number, a result is wrong or missing.
"""

import random

import pytest

from tests.contract.durable.app_plans import random_plan, result_of
from tests.contract.durable.server import DurableServer

pytestmark = [pytest.mark.contract, pytest.mark.e2e]  # runs long, so it is part of `make e2e`


async def test_random_plans_come_to_their_results_across_a_restart(server: DurableServer) -> None:
    source = random.Random(2)
    steps = {f"plan-{number}": random_plan(source) for number in range(40)}
    for instance_id, plan in steps.items():
        await server.start("plan", plan, instance_id)
    await server.restart()

    for instance_id, plan in steps.items():
        status = await server.until(instance_id, "Completed", "Failed")
        assert status.output == [result_of(step) for step in plan], plan
