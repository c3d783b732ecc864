"""Journal lines about sub-agents, written in the same way as by steps and turns."""

from shared.answering.children import DELEGATION, STATE, find_delegation, find_state
from shared.answering.services import SubagentServices
from shared.answering.subagent_models import Delegation, SubagentState
from shared.platform.errors import NotFoundError
from shared.platform.models import Model
from shared.runs.journal import Journal, read_journal


async def journal_of(services: SubagentServices, run_id: str) -> Journal:
    """Return the current journal of a run. If there is none, create an empty one."""
    await services.run_log.create(run_id)
    return await read_journal(services.run_log, services.blobs, run_id)


async def keep_delegation(services: SubagentServices, run_id: str, delegation: Delegation) -> Delegation:
    await _keep(services, run_id, delegation.step, delegation, DELEGATION)
    return delegation


async def keep_state(
    services: SubagentServices, run_id: str, step: int, state: SubagentState, index: int = 0
) -> None:
    await _keep(services, run_id, step, state, STATE, index)


async def stored_delegation(services: SubagentServices, run_id: str, step: int) -> Delegation | None:
    return await find_delegation(await journal_of(services, run_id), step)


async def stored_state(
    services: SubagentServices, run_id: str, step: int, index: int = 0
) -> SubagentState | None:
    try:
        journal = await read_journal(services.run_log, services.blobs, run_id)
    except NotFoundError:
        return None
    return await find_state(journal, step, index)


async def _keep(
    services: SubagentServices, run_id: str, step: int, value: Model, part: str, child: int | None = None
) -> None:
    line = await (await journal_of(services, run_id)).value_line(step, value, part)
    await services.run_log.append(run_id, [line.model_copy(update={"step": step, "child": child})])
