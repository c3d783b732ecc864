"""The blocks of a window's documents, counted row by row. Reads only."""

from collections import defaultdict

from shared.core.document_audit import SeenBlocks
from shared.core.id_windows import IdWindow
from shared.ingestion.inventory import all_rows
from shared.models.names import FIGURES
from shared.services import Services

WINDOW_BITS = 8  # of what the timer looks at each time: one of 256 parts, so each block within 21 hours
_FIELDS = ("block_id", "doc_id", "access_control_list", "image_url")


async def read_blocks(services: Services, window: IdWindow) -> dict[str, SeenBlocks]:
    """The blocks of the window's documents, by document."""
    condition = window.condition("doc_id")
    found: dict[str, SeenBlocks] = defaultdict(SeenBlocks)
    async for row in all_rows(services.content_index, "block_id", _FIELDS, condition):
        blocks = found[str(row["doc_id"])]
        blocks.count += 1
        blocks.access_lists.add(tuple(sorted(row.get("access_control_list") or ())))
        if row.get("image_url"):
            blocks.figures.add(str(row["image_url"]).removeprefix(f"{FIGURES}/"))
    return dict(found)
