"""Models of the synchronisation: input and reply of its activity, and its status."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from pydantic import Field

from shared.platform.models import Model

MAX_EXAMPLES = 100  # skipped or hidden items that the status names


class SkippedItem(Model):
    """An item that isn't searchable."""

    name: str = Field(description="File name in SharePoint.")
    reason: str = Field(description="Why it was skipped, or why the document is hidden.")


class Counts(Model):
    """Counts of a library's items, taken at the end of the latest successful run."""

    files: int = Field(default=0, description="Documents that are stored.")
    hidden: int = Field(
        default=0,
        description="Hidden documents: their permissions can't be read, or are too many.",
    )
    skipped: Mapping[str, int] = Field(default_factory=dict, description="Number of skipped files by reason.")
    examples: tuple[SkippedItem, ...] = Field(
        default=(), description="Up to 100 hidden or skipped files, hidden ones first."
    )


class SyncStep(Model):
    """Input of the activity and of its orchestration.

    Attributes:
        library_id: the library to synchronise.
        run: id of the run, the same for all its steps.
        is_configured: whether the settings still name the library.
    """

    library_id: str
    run: str
    is_configured: bool = True


class SyncReply(Model):
    """Output of the activity: whether to call it again, and after which pause."""

    following: Literal["more", "wait", "done"]
    pause_s: float = 0.0


class LibraryView(Model):
    """A synchronised library as shown to administrators."""

    library_id: str = Field(description="Id of the library.")
    name: str = Field(description="Name in SharePoint.")
    web_url: str = Field(description="URL in SharePoint.")
    address: str = Field(description="The entry of SHAREPOINT_LIBRARIES.")
    status: Literal["waiting", "running", "current", "failed", "closed"] = Field(
        description="waiting: never completed; closed: hidden, because nothing could be read for a day."
    )
    started_at: datetime | None = Field(description="Start of the latest run.")
    succeeded_at: datetime | None = Field(description="End of the latest successful run.")
    permissions_at: datetime | None = Field(description="Start of the latest pass over all permissions.")
    error: str | None = Field(description="Error type of the newest run, if it failed.")
    counts: Counts = Field(description="Counts of the latest successful run.")


class LibraryList(Model):
    """All synchronised libraries."""

    libraries: tuple[LibraryView, ...] = Field(description="In the order of their ids.")
