"""Creates what ingestion writes to: containers, the table of states, both indexes. Idempotent."""

from shared.core.index_schema import content_index, documents_index
from shared.models.names import CONTAINERS
from shared.services import Services

_prepared: list[Services] = []  # those of this process; one in production


async def prepare(services: Services) -> None:
    """Create what is missing; what exists is left as it is, or gains missing fields."""
    settings = services.settings
    await services.blobs.ensure_containers(CONTAINERS)
    await services.documents.ensure_table()
    await services.search_admin.ensure_index(
        content_index(settings.azure_search_content_index, settings.embedding_dimensions)
    )
    await services.search_admin.ensure_index(documents_index(settings.azure_search_documents_index))


async def ensure_ready(services: Services) -> None:
    """Prepare once per process, before its first ingestion. Two at once do no harm: it is idempotent."""
    if not any(known is services for known in _prepared):
        await prepare(services)
        _prepared.append(services)
