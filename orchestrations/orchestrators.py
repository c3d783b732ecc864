"""The orchestrators as the host knows them. Each hands over to its generator, and does nothing else.

A generator's module is imported when an instance is replayed first: the loops and their models are a third of
what a worker would wait for at its start. The SDK takes a plain function that returns a generator for one.
"""

from collections.abc import Generator
from typing import Any

import azure.durable_functions as df

blueprint = df.Blueprint()

Steps = Generator[Any, Any, dict[str, Any]]


@blueprint.orchestration_trigger(context_name="context")
def answer_question(context: df.DurableOrchestrationContext) -> Steps:
    """Question -> streamed, cited answer."""
    from orchestrations import answer_question as module

    return module.answer_question(context)


@blueprint.orchestration_trigger(context_name="context")
def run_sub_agent(context: df.DurableOrchestrationContext) -> Steps:
    """One sub-agent: turns, until its report stands or its limits end it."""
    from orchestrations import run_sub_agent as module

    return module.run_sub_agent(context)


@blueprint.orchestration_trigger(context_name="context")
def ingest_document(context: df.DurableOrchestrationContext) -> Steps:
    """Blob -> searchable document."""
    from orchestrations import ingest_document as module

    return module.ingest_document(context)


@blueprint.orchestration_trigger(context_name="context")
def summarize_documents(context: df.DurableOrchestrationContext) -> Steps:
    """Documents -> one cited summary."""
    from orchestrations import summarize_documents as module

    return module.summarize_documents(context)


@blueprint.orchestration_trigger(context_name="context")
def summarize_document(context: df.DurableOrchestrationContext) -> Steps:
    """The child of a summary: one document."""
    from orchestrations import summarize_documents as module

    return module.summarize_document(context)


@blueprint.orchestration_trigger(context_name="context")
def reply_in_channel(context: df.DurableOrchestrationContext) -> Steps:
    """A message in a chat -> what is said to it."""
    from orchestrations import reply_in_channel as module

    return module.reply_in_channel(context)
