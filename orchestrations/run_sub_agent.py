"""One sub-agent: turns, until its report stands or its limits end it. The durable driver of `subagent_loop`.

Only sequences: every turn is the activity `take_sub_agent_turn`. What turns read and write lies in the run's
working memory; the history holds counts.
"""

from collections.abc import Generator
from datetime import timedelta
from typing import Any

import azure.durable_functions as df

from orchestrations.payloads import as_object, call_activity, input_of
from shared.subagents.loop import TakeTurn, begin, next_move, observe
from shared.subagents.models import SubagentStart, TurnResult


def run_sub_agent(context: df.DurableOrchestrationContext) -> Generator[Any, Any, dict[str, Any]]:
    """The child. Input: SubagentStart. Output: SubagentEnd."""
    state = begin(SubagentStart.from_payload(input_of(context)))
    while isinstance(move := next_move(state, context.current_utc_datetime), TakeTurn):
        if move.delay_ms:
            due = context.current_utc_datetime + timedelta(milliseconds=move.delay_ms)
            yield context.create_timer(due)
        result = yield call_activity(context, "take_sub_agent_turn", move.turn.model_dump(mode="json"))
        state = observe(state, TurnResult.from_payload(as_object(result)))
    return move.model_dump(mode="json")
