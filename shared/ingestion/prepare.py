"""Creates what the app writes to: containers, tables, queues, indexes. Idempotent."""

from shared.ingestion.services import IngestionServices
from shared.platform.names import CONTAINERS, QUEUES
from shared.retrieval.schema import content_index, documents_index, memory_index

_prepared: list[IngestionServices] = []  # those of this process; one in production


async def prepare(services: IngestionServices) -> None:
    """Create what is missing; what exists is left as it is, or gains missing fields."""
    settings = services.settings
    await services.blobs.ensure_containers(CONTAINERS)
    await services.documents.ensure_table()
    await services.threads.ensure_table()
    await services.queues.ensure_queues(QUEUES)
    await services.search_admin.ensure_index(
        content_index(settings.azure_search_content_index, settings.embedding_dimensions)
    )
    await services.search_admin.ensure_index(documents_index(settings.azure_search_documents_index))
    await services.search_admin.ensure_index(
        memory_index(settings.azure_search_memory_index, settings.embedding_dimensions)
    )


async def ensure_ready(services: IngestionServices) -> None:
    """Prepare once per process, before its first ingestion. Two at once do no harm: it is idempotent."""
    if not any(known is services for known in _prepared):
        await prepare(services)
        _prepared.append(services)
