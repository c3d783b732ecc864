"""The only place that builds clients: settings in, services out. Built once per process, on first use."""

from functools import cache

from shared.services import Services  # the dataclass lives there: agents and ingestion may not import wiring
from shared.settings import Settings, get_settings


@cache
def get_services() -> Services:
    """The process's services."""
    return build_services(get_settings())


def build_services(settings: Settings) -> Services:
    """Make every client. The SDKs are imported here and not at start: a cold start pays for what it uses."""
    raise NotImplementedError
