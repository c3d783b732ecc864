"""What crosses the borders of the synchronisation: inputs and replies of its activity, and its status."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from pydantic import Field

from shared.platform.models import Model

MAX_EXAMPLES = 100  # skipped or hidden items that the status names


class SkippedItem(Model):
    """An item that isn't searchable, for the administrator."""

    name: str
    reason: str


class Counts(Model):
    """Items of a library, counted by the last complete pass over it.

    Attributes:
        hidden: documents that nobody can see because their permissions can't be read or don't fit.
        skipped: files that were left out, by reason.
    """

    files: int = 0
    hidden: int = 0
    skipped: Mapping[str, int] = Field(default_factory=dict)
    examples: tuple[SkippedItem, ...] = ()


class SyncStep(Model):
    """Input of the activity and of its orchestration.

    Attributes:
        library_id: the library to advance.
        run: identifies the run; the same for all its steps.
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
    """A synchronised library, as administrators see it."""

    library_id: str
    name: str
    web_url: str
    address: str = Field(description="The entry of SHAREPOINT_LIBRARIES.")
    status: Literal["waiting", "running", "current", "failed", "closed"] = Field(
        description="waiting: never completed; closed: hidden, because nothing could be read for a day."
    )
    started_at: datetime | None = Field(description="Of the newest run.")
    succeeded_at: datetime | None = Field(description="Of the newest run that completed.")
    permissions_at: datetime | None = Field(description="Of the newest pass over all permissions.")
    error: str | None = Field(description="Error type of the newest run, if it failed.")
    counts: Counts


class LibraryList(Model):
    """All synchronised libraries."""

    libraries: tuple[LibraryView, ...]
