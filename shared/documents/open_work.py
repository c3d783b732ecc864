"""Models of the ingestion backlog and of the documents admitted to ingestion."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from shared.platform.models import Model

Urgency = Literal["change", "upload", "background"]
"""A change by a person, a file that a person uploaded, or anything else."""


class OpenWork(Model):
    """A row of the ingestion backlog, for a document that needs to be ingested, updated or deleted.

    Attributes:
        revision: etag of this row, which changes with each request for work.
        whose: folder of the uploader, or top-level folder of any other file.
        is_long: whether the ingestion may take more than a second, unlike that of a short text.
        due_at: no ingestion starts before this time.
        rests: number of times that the ingestion has waited for an unavailable service.
    """

    doc_id: str
    blob_name: str
    whose: str
    urgency: Urgency
    is_long: bool
    asked_at: datetime
    due_at: datetime | None = None
    rests: int = 0
    revision: str | None = Field(default=None, exclude=True)


class SecondLook(Model):
    """Document whose blocks must be compared with its manifest later, because an ingestion that was fenced
    off may still be writing blocks.
    """

    doc_id: str
    fenced_at: datetime
    revision: str | None = Field(default=None, exclude=True)


class Place(Model):
    """Ingestion slot that a document occupies while it is being ingested. The number of slots is limited.

    Attributes:
        is_kept: it has the place that is kept for people without a document in progress.
        look_at: the watch doesn't look for a dead execution before this time.
        starts: number of times that the watch had to start the ingestion again.
    """

    doc_id: str
    blob_name: str
    whose: str
    is_long: bool
    is_kept: bool = False
    look_at: datetime
    starts: int = 0


class Admission(Model):
    """Documents that are being ingested now, across all workers of the app.

    Attributes:
        watch: token of the message that looks after them; "" = none is needed.
        watched_at: time of the last check.
    """

    places: tuple[Place, ...] = ()
    watch: str = ""
    watched_at: datetime | None = None
    revision: str | None = Field(default=None, exclude=True)
