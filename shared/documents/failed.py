"""All failed documents, for administrators: names and reasons, never contents."""

from datetime import datetime

from pydantic import Field

from shared.documents.state import DocumentState
from shared.documents.state_store import DocumentStore
from shared.platform.errors import FileFailure
from shared.platform.models import Model

_MAX_LISTED = 200  # more failures usually share a cause, which the newest show


class FailedDocument(Model):
    """A document whose ingestion failed, as shown to administrators."""

    doc_id: str = Field(description="The document.")
    filename: str = Field(description="Name of the file.")
    owner_id: str | None = Field(description="Its owner; null for files without one.")
    owner_name: str | None = Field(description="The owner's name, if it is known.")
    failed_at: datetime = Field(description="When it failed.")
    failure: FileFailure | None = Field(description="The reason, as a stable code.")
    status_reason: str | None = Field(description="The reason, in words.")
    hint: str | None = Field(description="What its owner can do.")


class FailedDocumentList(Model):
    """The failed documents of all users."""

    documents: tuple[FailedDocument, ...] = Field(description="The newest, at most 200.")
    count: int = Field(description="How many have failed in all.")


async def failed_documents(store: DocumentStore) -> FailedDocumentList:
    """Return the failed documents of all users, newest first."""
    failed = [
        state async for state in store.unfinished() if state.status == "failed" and not state.is_deleted
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
