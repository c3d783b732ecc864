"""The services, with what they write to in place; and whether the settings allow a start at all."""

from typing import TYPE_CHECKING

from shared.settings import get_settings
from shared.wiring import get_services

if TYPE_CHECKING:
    from shared.services import Services


async def ready_services() -> "Services":
    """The process's services; its first call creates the containers, tables and indexes that are missing.

    Without this a question that comes before the first document would find no index and fail.
    """
    from shared.ingestion.prepare import ensure_ready

    services = get_services()
    await ensure_ready(services)
    return services


def require_settings() -> None:
    """Stop the start when a setting is missing or wrong, rather than fail with each request.

    Raises:
        ConfigurationError: all that is wrong, each with its name, its purpose and an example.
    """
    get_settings()
