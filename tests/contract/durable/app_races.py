"""An orchestrator that races children of the test app against a deadline."""

from datetime import timedelta
from typing import Any, TypeAlias

import azure.durable_functions as df

from orchestrations.fan_out import Child, race

Context: TypeAlias = df.DurableOrchestrationContext
races = df.Blueprint()


@races.orchestration_trigger(context_name="context")
def races_children(context: Context) -> Any:
    """Input: {"gates": what each child waits for, "at_once", "seconds": until the deadline}."""
    given = context.get_input()
    children = [
        Child("waits_at_gate", {"gate": gate}, f"{context.instance_id}:c{place}")
        for place, gate in enumerate(given["gates"])
    ]
    deadline = context.current_utc_datetime + timedelta(seconds=given["seconds"])
    ends = yield from race(context, children, deadline, at_once=given["at_once"])
    return [end.status for end in ends] + [(yield context.call_activity("square", 7))]


@races.orchestration_trigger(context_name="context")
def waits_at_gate(context: Context) -> Any:
    gate = context.get_input()["gate"]
    if gate == "raises":
        raise ValueError("a defect of a child")
    if gate:
        yield context.call_activity("hold", gate)
    return {"gate": gate}
