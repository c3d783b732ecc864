"""Who holds a document, and whether it still lives: a claim must not outlast whoever made it.

An orchestration that was terminated or failed shows no life any more, and says nothing either; without a look
at it every later event would wait for its lease to run out, and then for the next reconciliation.
"""

from collections.abc import Awaitable, Callable

from shared.core.document_ids import document_id
from shared.errors import ConflictError, DependencyError
from shared.ingestion.claims import is_change, now
from shared.models.ingestion import Closed, DocumentState, IngestStep
from shared.services import Services

HasEnded = Callable[[str], Awaitable[bool]]
"""Takes the id of an orchestration's instance; True when it will do nothing any more."""


async def check_holder(step: IngestStep, services: Services, has_ended: HasEnded) -> Closed:
    """Free the document if its holder is dead; `again` = nobody works on it, and our event is still open.

    Raises:
        DependencyError: a change by a person is under way; soon it is not, or its lease has run out.
    """
    while True:
        state = await services.documents.get(document_id(step.blob_name))
        if state is None or not state.pending:
            return Closed(again=False)  # somebody has looked at the blob since we left our note
        if state.holder is None or state.holder == step.instance_id:
            return Closed(again=True)
        if not await _is_dead(state, has_ended):
            return Closed(again=False)
        try:
            await services.documents.replace(state.model_copy(update={"holder": None, "held_until": None}))
        except ConflictError:
            continue
        return Closed(again=True)


async def _is_dead(state: DocumentState, has_ended: HasEnded) -> bool:
    if state.held_until is None or state.held_until <= now():
        return True
    if state.holder is None or not is_change(state.holder):
        return state.holder is None or await has_ended(state.holder)
    raise DependencyError("The document is being changed just now.", "It is looked at again.")
