"""An answer to a question that a run put to its owner, from the outside: read, checked, stored once."""

from shared.agents.working_memory import WorkingMemory
from shared.core.choosing import read_answer
from shared.errors import ConflictError
from shared.models.clarification import Clarification, ClarificationAnswer
from shared.models.identity import UserContext
from shared.models.runs import RunRecord
from shared.services import Services

_ENDED = ("completed", "failed", "cancelled")


async def pending_clarification(record: RunRecord, services: Services) -> Clarification | None:
    """What a run waits to be told; None when it does not wait."""
    if record.status != "waiting":
        return None
    return await WorkingMemory(services.blobs, record.run_id).clarification(record.ask_step)


async def answer_clarification(
    record: RunRecord, answer: ClarificationAnswer, user: UserContext, services: Services
) -> bool:
    """Store an answer; the caller then tells the orchestration. Doing it twice changes nothing.

    True when the run has to be told: it may not know of the answer yet.

    Args:
        user: the run's owner as of now: their rights may be others than when they asked, days ago.

    Raises:
        CallerError: there is no such option; the run goes on waiting.
        ConflictError: nothing was asked, or it was answered otherwise, or no answer came in time.
    """
    if not record.ask_step:
        raise ConflictError("The run asks nothing.", "Read its events to see what it does.")
    memory = WorkingMemory(services.blobs, record.run_id)
    asked = await memory.clarification(record.ask_step)
    choice = read_answer(answer, asked.options).model_copy(update={"asker": user})
    if record.status in _ENDED:
        kept = await memory.find_choice(record.ask_step)
    else:
        kept = await memory.put_choice(record.ask_step, choice)
    if kept is None or (kept.numbers, kept.extra_words) != (choice.numbers, choice.extra_words):
        raise ConflictError("The question was answered already, or is no longer open.", "Ask again.")
    return record.status == "waiting"
