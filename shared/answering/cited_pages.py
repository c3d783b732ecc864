"""What a reader of a document may see of it: by the rights of now, and the citation that led there.

The right is asked for each time, of the index and of the document's state: a revoked one counts at once. A
citation comes from a run of the reader's own; anybody else's shows nothing, and says nothing.
"""

import re

from shared.access.models import UserContext
from shared.answering.services import AnsweringServices
from shared.answering.shown_answer import shown_citations
from shared.evidence.models import Citation
from shared.platform.blobs import BlobStore
from shared.platform.errors import NotFoundError
from shared.platform.search import SearchIndex
from shared.retrieval.blocks import BlockLookup
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.events import events_of
from shared.runs.models import ID_PATTERN, RunRecord
from shared.runs.run_log import RunLog
from shared.runs.working_memory import committed_answer


async def own_citation(
    run_id: str, n: int, doc_id: str, user: UserContext, services: AnsweringServices
) -> Citation | None:
    """Citation `n` of the user's own run, if it is of this document; else None, whatever the reason."""
    if not n or not re.fullmatch(ID_PATTERN, run_id):
        return None
    record = await services.runs.get(run_id)
    if record is None or record.owner_id != user.user_id:
        return None
    try:
        cited = await _citations(record, services.blobs, services.run_log)
    except NotFoundError:  # the thread was cleared, and its answers went
        return None
    return next((one for one in cited if one.n == n and one.doc_id == doc_id and one.quote), None)


async def block_text(block_id: str, user: UserContext, content_index: SearchIndex) -> str:
    """The text of a block; empty when it is gone."""
    found = await BlockLookup(SecuredIndex(content_index, user)).get_many([block_id])
    return (found[0].content or found[0].image_caption or "") if found else ""


async def _citations(record: RunRecord, blobs: BlobStore, run_log: RunLog) -> list[Citation]:
    """Those of the answer; of a run without one, those that were shown so far."""
    if record.status == "completed":
        return list((await committed_answer(record.run_id, blobs)).citations)
    return shown_citations(events_of(await run_log.read(record.run_id)))
