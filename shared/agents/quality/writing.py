"""What only the step that writes an answer knows of its quality; kept for the step that commits it."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from shared.agents.journal import Journal
from shared.agents.working_memory import WorkingMemory
from shared.errors import GroundworkError
from shared.models.quality import WritingFacts
from shared.models.search import Hit
from shared.retrieval.page_figures import FigureFinder
from shared.telemetry import get_logger


class FiguresSeen:
    """Finds pictures near blocks, and counts them beside those that were found before."""

    def __init__(self, finder: FigureFinder, hits: Sequence[Hit]) -> None:
        self._finder = finder
        self.count = _images(hits)

    async def near(self, question: str, hits: Sequence[Hit]) -> Sequence[Hit]:
        """What the finder finds."""
        found = await self._finder.near(question, hits)
        self.count += _images(found)
        return found


def writing_facts(journal: Journal, since: datetime, figures_available: int) -> WritingFacts:
    """What is known of one attempt; `since` when its asker began to wait, with zone."""
    sent_at = journal.first_token_at
    waited = None if sent_at is None else max(0, round((sent_at - since) / timedelta(milliseconds=1)))
    return WritingFacts(first_token_ms=waited, figures_available=figures_available)


async def keep_facts(memory: WorkingMemory, step: int, facts: WritingFacts) -> None:
    """Keep them beside the answer. Never raises: the answer does not depend on it."""
    try:
        await memory.put_facts(step, facts)
    except GroundworkError as failed:
        get_logger().warning("quality.not_kept", kind="facts", error_type=failed.code)


def _images(hits: Sequence[Hit]) -> int:
    return sum(hit.block_type == "image" for hit in hits)
