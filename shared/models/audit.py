"""What an audit finds: whether files, states, index rows and figures tell of the same documents."""

from datetime import datetime
from typing import Literal

from shared.models.base import Model

DifferenceKind = Literal[
    "not_ingested",
    "outdated",
    "in_work",
    "file_gone",
    "rights_differ",
    "row_missing",
    "row_differs",
    "row_orphaned",
    "blocks_missing",
    "blocks_differ",
    "blocks_orphaned",
    "figures_missing",
    "figures_orphaned",
    "work_left",
]


class Difference(Model):
    """One thing that does not agree. `place` is a blob's name where it is known, else a document's id."""

    kind: DifferenceKind
    place: str
    detail: str


class AuditCounts(Model):
    """How many there are of each."""

    files: int = 0
    states: int = 0
    rows: int = 0
    blocks: int = 0
    figures: int = 0
    failed: int = 0


class AuditReport(Model):
    """Answer of GET /api/admin/audit.

    Attributes:
        agrees: nothing differs. A document that failed for a reason of its own is no difference.
        differences: the first MAX_DIFFERENCES of them.
        difference_count: all of them.
        share: of the documents that were looked at, 1 = all; of very many it is another part each time.
    """

    agrees: bool
    at: datetime
    share: float
    counts: AuditCounts
    difference_count: int
    differences: tuple[Difference, ...]


class ReconcileReport(Model):
    """What one reconciliation did.

    Attributes:
        started: ingestions, by the kind of difference.
        removed_orphans: documents of which only index rows were left.
        left: differences that the next run will find again.
        share: of the documents that were looked at, as in an audit.
    """

    started: dict[str, int]
    removed_orphans: int
    left: int
    share: float
