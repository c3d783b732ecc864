"""Registers orchestrators and activities by name. Each registered function loads its module on the first call
and delegates to the function of the same name.

The SDK accepts a plain function that returns a generator as an orchestrator.
"""

from collections.abc import Generator
from typing import Any

import azure.durable_functions as df

from orchestrations.payloads import Payload
from shared.platform.loading import load, load_async

blueprint = df.Blueprint()

ORCHESTRATORS = {  # names of orchestrators and the modules that define them
    "answer_question": "orchestrations.run_agent",
    "run_sub_agent": "orchestrations.run_agent",
    "document_summary": "orchestrations.run_agent",
    "read_document": "orchestrations.run_agent",
    "ingest_document": "orchestrations.ingest_document",
    "reply_in_channel": "orchestrations.reply_in_channel",
    "synchronise_library": "orchestrations.synchronise_library",
}
ACTIVITIES = {
    "perform_step": "orchestrations.activities",
    "record_span": "orchestrations.activities",
    "advance_library": "orchestrations.library_activities",
}
ACTIVITIES_WITH_CLIENT = {
    "reply_step": "orchestrations.channel_activities",
    "terminate_instances": "orchestrations.activities",
}


def _register_orchestrator(name: str, module: str) -> None:
    def hand_over(context: df.DurableOrchestrationContext) -> Generator[Any, Any, dict[str, Any]]:
        generator: Generator[Any, Any, dict[str, Any]] = load(module, name)(context)
        return generator

    hand_over.__name__ = name
    blueprint.orchestration_trigger(context_name="context")(hand_over)


def _register_activity(name: str, module: str) -> None:
    async def hand_over(payload: Payload) -> dict[str, Any]:
        reply: dict[str, Any] = await (await load_async(module, name))(payload)
        return reply

    hand_over.__name__ = name
    blueprint.activity_trigger(input_name="payload")(hand_over)


def _register_activity_with_client(name: str, module: str) -> None:
    async def hand_over(payload: Payload, client: df.DurableOrchestrationClient) -> dict[str, Any]:
        reply: dict[str, Any] = await (await load_async(module, name))(payload, client)
        return reply

    hand_over.__name__ = name
    with_client = blueprint.durable_client_input(client_name="client")(hand_over)
    blueprint.activity_trigger(input_name="payload")(with_client)


for _name, _module in ORCHESTRATORS.items():
    _register_orchestrator(_name, _module)
for _name, _module in ACTIVITIES.items():
    _register_activity(_name, _module)
for _name, _module in ACTIVITIES_WITH_CLIENT.items():
    _register_activity_with_client(_name, _module)
