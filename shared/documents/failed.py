"""The list of failed documents for administrators. It shows names and reasons, but no contents."""

from datetime import datetime

from pydantic import Field

from shared.documents.state import DocumentState
from shared.documents.state_store import DocumentStore
from shared.platform.errors import FileFailure
from shared.platform.models import Model

# Maximum number of listed documents. If more failed, they usually share a cause, which the newest failures
# show.
_MAX_LISTED = 200


class FailedDocument(Model):
    """A document whose ingestion failed, as administrators see it."""

    doc_id: str = Field(description="Id of the document.")
    filename: str = Field(description="File name of the document.")
    owner_id: str | None = Field(description="Id of the owner, or null if the document has none.")
    owner_name: str | None = Field(description="Display name of the owner, if known.")
    failed_at: datetime = Field(description="Time of the failure.")
    failure: FileFailure | None = Field(description="Stable error code of the failure.")
    status_reason: str | None = Field(description="Explanation of the failure, as a sentence for people.")
    hint: str | None = Field(description="Advice for the owner on how to resolve the problem.")


class FailedDocumentList(Model):
    """The failed documents of all users."""

    documents: tuple[FailedDocument, ...] = Field(
        description="The most recent failures, newest first, at most 200."
    )
    count: int = Field(description="Total number of failed documents, including those not listed.")


async def failed_documents(store: DocumentStore) -> FailedDocumentList:
    """Return the failed documents of all users, newest first. Files that belong to a single conversation are
    left out.
    """
    failed = [
        state
        async for state in store.unfinished()
        if state.status == "failed" and not state.is_deleted and not state.thread_id
    ]
    failed.sort(key=lambda state: state.updated_at, reverse=True)
    return FailedDocumentList(documents=tuple(map(_view, failed[:_MAX_LISTED])), count=len(failed))


def _view(state: DocumentState) -> FailedDocument:
    return FailedDocument(
        doc_id=state.doc_id,
        filename=state.filename,
        owner_id=state.wanted_rights.owner_id,
        owner_name=state.wanted_rights.published_by,
        failed_at=state.updated_at,
        failure=state.failure,
        status_reason=state.reason,
        hint=state.hint,
    )
