"""A file that was moved: a copy came, then the old one went. Its owner's corrections follow the new name.

This is the side of the old document, right before it is removed; `copying.take_corrections` is that of the
new one, for an old file that went while the copy was ingested.
"""

from shared.core.copies import is_new_name
from shared.errors import ConflictError, DependencyError
from shared.ingestion.changing import correct
from shared.ingestion.claims import now
from shared.ingestion.copying import same_bytes
from shared.models.ingestion import DocumentState, IngestStep
from shared.services import Services


async def hand_over(step: IngestStep, state: DocumentState, services: Services) -> None:
    """Give the corrections of a document whose file is gone to the one that is its new name, if there is one.

    Raises:
        DependencyError: somebody works on that one. On the last attempt the corrections go.
    """
    if not state.corrections:
        return
    moment = now()
    async for other in same_bytes(state, state.content_hash, services):
        if not is_new_name(state, other, moment):
            continue
        try:
            # Whoever left it a note meanwhile looks after it by himself (`holders.check_holder`).
            await correct(other, state.corrections, services)
        except ConflictError:
            if not step.last_attempt:
                raise DependencyError("The copy of the document is in work.", "It is tried again.") from None
        return
