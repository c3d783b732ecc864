"""The blocks of all documents, or of one part of them, counted row by row. Reads only."""

from collections import defaultdict
from datetime import datetime

from shared.core.document_audit import SeenBlocks
from shared.ingestion.inventory import all_rows
from shared.models.names import FIGURES
from shared.services import Services

PART_S = 300  # how long one part is due: as long as the timer takes from one reconciliation to the next
_PARTS = 256  # so each block is looked at within 21 hours, and 1 of 256 at a time
_FIELDS = ("block_id", "doc_id", "access_control_list", "image_url")


def part_of(moment: datetime) -> str:
    """The part that is due: ids of documents that begin so. Empty = all of them."""
    return f"{int(moment.timestamp() // PART_S) % _PARTS:02x}"


async def read_blocks(services: Services, part: str = "") -> dict[str, SeenBlocks]:
    """The blocks of documents whose ids begin with `part`, by document."""
    # "g" comes right after the digits of an id.
    condition = f"doc_id ge '{part}' and doc_id lt '{part}g'" if part else None
    found: dict[str, SeenBlocks] = defaultdict(SeenBlocks)
    async for row in all_rows(services.content_index, "block_id", _FIELDS, condition):
        blocks = found[str(row["doc_id"])]
        blocks.count += 1
        blocks.access_lists.add(tuple(sorted(row.get("access_control_list") or ())))
        if row.get("image_url"):
            blocks.figures.add(str(row["image_url"]).removeprefix(f"{FIGURES}/"))
    return dict(found)
