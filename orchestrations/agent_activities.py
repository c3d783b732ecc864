"""The activity behind the loop: one decided step in, one observation out."""

from typing import Any

import azure.durable_functions as df

from orchestrations.payloads import Payload, as_object
from shared.models.steps import StepInput

blueprint = df.Blueprint()


@blueprint.activity_trigger(input_name="payload")
async def perform_step(payload: Payload) -> dict[str, Any]:
    """Perform one step of a run. Input: StepInput. Output: StepResult; raises only for defects."""
    # Imported when used: a worker that only serves HTTP never pays for it.
    from shared.agents.effects import perform_metered
    from shared.wiring import get_services

    step_input = StepInput.model_validate(as_object(payload))
    result = await perform_metered(step_input, get_services())
    return result.model_dump(mode="json")
