"""All failed documents, for administrators: names and reasons, never contents."""

from datetime import datetime

from pydantic import Field

from shared.documents.state import DocumentState
from shared.documents.state_store import DocumentStore
from shared.platform.errors import FileFailure
from shared.platform.models import Model

_MAX_LISTED = 200  # larger numbers usually have one cause, which the newest failures show


class FailedDocument(Model):
    """A document whose ingestion failed, as shown to administrators."""

    doc_id: str = Field(description="Id of the document.")
    filename: str = Field(description="File name.")
    owner_id: str | None = Field(description="Id of the document's owner; null if it has none.")
    owner_name: str | None = Field(description="Name of the owner, if known.")
    failed_at: datetime = Field(description="Time of the failure.")
    failure: FileFailure | None = Field(description="Stable error code of the failure.")
    status_reason: str | None = Field(description="Explanation of the failure.")
    hint: str | None = Field(description="How the owner can resolve the problem.")


class FailedDocumentList(Model):
    """The failed documents of all users."""

    documents: tuple[FailedDocument, ...] = Field(description="The most recent failures, at most 200.")
    count: int = Field(description="Total number of failed documents.")


async def failed_documents(store: DocumentStore) -> FailedDocumentList:
    """Return the failed documents of all users, newest first, without files for one conversation."""
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
