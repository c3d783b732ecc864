"""The only place that builds clients: settings in, services out. Built once per process, on first use."""

from dataclasses import dataclass
from functools import cache

from shared.ports import BlobStore, ChatModel, Embedder, RunLog, RunStore, SearchAdmin, SearchIndex
from shared.settings import Settings, get_settings


@dataclass(frozen=True)
class Services:
    """Everything that effects may use; tests put fakes here."""

    settings: Settings
    content_index: SearchIndex
    documents_index: SearchIndex
    search_admin: SearchAdmin
    chat_model: ChatModel
    embedder: Embedder
    blobs: BlobStore
    run_log: RunLog
    runs: RunStore


@cache
def get_services() -> Services:
    """The process's services."""
    return build_services(get_settings())


def build_services(settings: Settings) -> Services:
    """Make every client. The SDKs are imported here and not at start: a cold start pays for what it uses."""
    raise NotImplementedError
