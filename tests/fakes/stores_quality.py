"""A store of quality records in memory."""

from shared.quality.models import QualityRecord
from shared.quality.store import QualityStore
from tests.fakes.table import InMemoryTable


class InMemoryQualityStore(QualityStore):
    """The real store over a table in memory."""

    def __init__(self) -> None:
        self.table = InMemoryTable()
        super().__init__(self.table)

    @property
    def records(self) -> dict[tuple[str, str], QualityRecord]:
        """The records by hour, and by kind and key."""
        records = {keys: self.record_of(row) for keys, row in self.table.rows.items()}
        return {keys: record for keys, record in records.items() if record is not None}
