"""All connections of one process, closed together. Adapters share them; none owns one."""

from typing import TYPE_CHECKING

from shared.clients.bot_files import bot_token
from shared.clients.bot_keys import connect_bot
from shared.clients.connection import Closable, Connection
from shared.clients.credentials import Credentials
from shared.clients.docling import connect_docling
from shared.clients.document_intelligence import connect_document_intelligence
from shared.clients.graph import connect_graph, graph_token
from shared.clients.model_connection import connect_model
from shared.clients.search_connections import connect_admin, connect_index
from shared.clients.storage_connections import connect_blobs, connect_queues, connect_tables
from shared.clients.web_search import connect_web_search
from shared.settings import Settings

if TYPE_CHECKING:
    from azure.search.documents.aio import SearchClient


class Connections:
    """One client per service, whatever the number of adapters."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._credentials = Credentials(settings)
        self.blobs = connect_blobs(settings, self._credentials)
        self.queues = connect_queues(settings, self._credentials)
        self.tables = connect_tables(settings, self._credentials)
        self.model = connect_model(settings, self._credentials)
        self.search_admin = connect_admin(settings, self._credentials)
        self.document_intelligence = connect_document_intelligence(settings, self._credentials)
        self.docling = connect_docling(settings)
        self.web_search = connect_web_search(settings)
        self.graph = connect_graph()
        self.graph_token = graph_token(settings, self._credentials)
        self.bot = connect_bot()
        self.bot_token = bot_token(settings, self._credentials)
        self._indexes: dict[str, Connection[SearchClient]] = {}

    def search_index(self, name: str) -> "Connection[SearchClient]":
        """The connection to one index."""
        if name not in self._indexes:
            self._indexes[name] = connect_index(self._settings, self._credentials, name)
        return self._indexes[name]

    async def close(self) -> None:
        """End whatever was opened. The identity last: the others may still ask it for a token."""
        opened: list[Closable] = [self.blobs, self.queues, self.tables, self.model, self.search_admin]
        others: list[Closable] = [
            self.document_intelligence,
            self.docling,
            self.web_search,
            self.graph,
            self.bot,
        ]
        for connection in (*opened, *others, *self._indexes.values(), self._credentials):
            await connection.close()
