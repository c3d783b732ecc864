"""The orchestrators as the host knows them. Each hands its context to a generator, and does nothing else.

A generator's module is imported when an instance is replayed first: the loops and their models are a third of
what a worker would wait for at its start. The SDK takes a plain function that returns a generator for one.
"""

from collections.abc import Generator
from importlib import import_module
from typing import Any

import azure.durable_functions as df

blueprint = df.Blueprint()

MODULES = {  # of the generator that has the orchestration's name
    "answer_question": "orchestrations.run_agent",
    "run_sub_agent": "orchestrations.run_agent",
    "ingest_document": "orchestrations.ingest_document",
    "summarize_documents": "orchestrations.summarize_documents",
    "summarize_document": "orchestrations.summarize_documents",
    "reply_in_channel": "orchestrations.reply_in_channel",
    "synchronise_library": "orchestrations.synchronise_library",
}


def _register(name: str) -> None:
    def hand_over(context: df.DurableOrchestrationContext) -> Generator[Any, Any, dict[str, Any]]:
        generator: Generator[Any, Any, dict[str, Any]] = getattr(import_module(MODULES[name]), name)(context)
        return generator

    hand_over.__name__ = name
    blueprint.orchestration_trigger(context_name="context")(hand_over)


for _name in MODULES:
    _register(_name)
