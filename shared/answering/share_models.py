"""Stored models and wire models for sharing answers. Pure."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from shared.documents.requests import Principal
from shared.evidence.models import AnswerFigure, Citation
from shared.platform.models import Model
from shared.runs.provenance import Obstacle, UsedDocument

MAX_SHARE_DAYS = 90
MAX_ADDRESSEES = 100
ShareObstacle = Obstacle | Literal["changed"]
"""`changed`: the owner can no longer read a document in the version that was used."""


class StoredShare(Model):
    """A share as stored with its run. Erasing the run also erases the share.

    Attributes:
        audience: entries as in an access list.
        shared_by: the owner's display name; empty if unknown.
        documents: all documents that a reader of the answer must be able to read, in these versions.
    """

    share_id: str
    run_id: str
    audience: tuple[str, ...]
    shared_by: str
    created_at: datetime
    expires_at: datetime
    documents: tuple[UsedDocument, ...]


class SharePointer(Model):
    """The stored mapping from a share's id to its run. It gives no access by itself."""

    run_id: str


class ShareOrder(Model):
    """Body of POST /api/runs/{run_id}/shares."""

    audience: Annotated[tuple[Principal, ...], Field(min_length=1, max_length=MAX_ADDRESSEES)] = Field(
        description=(
            "Readers of the share: ids of people and groups, names of departments, `org:` followed by an "
            "organisation id, or `*` for everyone."
        )
    )
    days: int = Field(
        default=30, ge=1, le=MAX_SHARE_DAYS, strict=True, description="Days until the share expires."
    )


class Share(Model):
    """A share as shown to its owner."""

    share_id: str = Field(description="Id of the share.")
    url: str = Field(description="URL of the shared answer on the web page, relative to the app.")
    audience: tuple[str, ...] = Field(description="Readers of the share, as entries of an access list.")
    created_at: datetime = Field(description="Time when the share was created.")
    expires_at: datetime = Field(description="Time when the share expires.")


class NeededDocument(Model):
    """A document that the readers of a shared answer must be able to read."""

    doc_id: str = Field(description="Id of the document.")
    filename: str = Field(description="Name of the file; empty if the caller can't read it.")


class ShareList(Model):
    """Response of GET /api/runs/{run_id}/shares."""

    shares: tuple[Share, ...] = Field(description="Active shares, newest first.")
    documents: tuple[NeededDocument, ...] = Field(
        description="Documents that readers must be able to read before they see the answer."
    )
    obstacles: tuple[ShareObstacle, ...] = Field(
        description="Reasons why the answer can't be shared; empty if it can."
    )


class SharedAnswer(Model):
    """An answer as shown to the readers of a share. It omits plans, thoughts, sub-agents and costs, and the
    ids of run, thread and owner.
    """

    text: str = Field(description="Text of the answer in Markdown.")
    language: str = Field(description="Language of the answer, an ISO 639-1 code.")
    citations: tuple[Citation, ...] = Field(description="Citations, in the order of their numbers.")
    figures: tuple[AnswerFigure, ...] = Field(
        description=("Figures shown in the answer, in the order of the text.")
    )


class SharedView(Model):
    """A share as shown to its readers."""

    question: str = Field(description="The question that was answered.")
    shared_by: str = Field(description="Name of the person who shared the answer; empty if unknown.")
    expires_at: datetime = Field(description="Time when the share expires.")
    answer: SharedAnswer | None = Field(
        description="The answer; null unless the caller can read all its documents in the versions used."
    )
