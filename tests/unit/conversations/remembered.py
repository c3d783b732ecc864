"""The rows of episodic memory."""

from shared.platform.search import IndexRow
from shared.wiring import Services
from tests.fakes.search_index import InMemorySearchIndex


def rows(services: Services) -> dict[str, IndexRow]:
    """Return the rows of episodic memory by id."""
    assert isinstance(services.memory_index, InMemorySearchIndex)
    return services.memory_index.rows
