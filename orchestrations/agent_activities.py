"""The activity behind the loop: one decided step in, one observation out."""

from typing import Any

import azure.durable_functions as df

from orchestrations.payloads import Payload, as_object
from shared.models.steps import StepInput, StepResult

blueprint = df.Blueprint()


@blueprint.activity_trigger(input_name="payload")
async def perform_step(payload: Payload) -> dict[str, Any]:
    """Perform one step of a run. Input: StepInput. Output: StepResult; raises only for defects."""
    # Imported when used: a worker that only serves HTTP never pays for it.
    from shared.agents.effects import perform
    from shared.wiring import get_services

    step_input = StepInput.model_validate(as_object(payload))
    observation = await perform(step_input, get_services())
    return StepResult(observation=observation).model_dump(mode="json")
