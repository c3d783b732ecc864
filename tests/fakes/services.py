"""All services in memory: `fake_services()` for tests of code above the ports."""

from typing import Any

import shared.tools.registry  # noqa: F401  # tools have settings of their own
from shared.access.audit_trail import AuditTrail
from shared.ingestion.parser_services import ParserServices
from shared.platform.settings import Settings
from shared.tables.databases import Databases
from shared.wiring import Services
from tests.fakes.blob_store import InMemoryBlobStore
from tests.fakes.directory import InMemoryDirectory
from tests.fakes.models import HashingEmbedder, ScriptedChatModel
from tests.fakes.run_log import InMemoryRunLog
from tests.fakes.search_index import InMemorySearchAdmin, InMemorySearchIndex
from tests.fakes.stores import (
    InMemoryDocumentStore,
    InMemoryPoisonQueues,
    InMemoryRunStore,
    InMemoryTaskQueues,
    InMemoryThreadStore,
)
from tests.fakes.stores_quality import InMemoryQualityStore
from tests.fakes.stores_requests import InMemoryIdempotencyStore, InMemoryUserLimitStore
from tests.fakes.stores_subagents import InMemoryControlStore
from tests.fakes.table import InMemoryTable

OWNER_ID_KEY = "the key of tests for ids, 0123456789"
LEAST_ENVIRONMENT = {
    "AZURE_SEARCH_ENDPOINT": "http://127.0.0.1:9",
    "AZURE_SEARCH_API_KEY": "key",
    "DocumentsStorage": "UseDevelopmentStorage=true",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    "CHAT_MODEL": "chat",
    "EMBEDDING_MODEL": "embedding",
    "EMBEDDING_DIMENSIONS": "64",
    "OWNER_ID_KEY": OWNER_ID_KEY,
}
"""The variables that every process of the app needs; nothing listens at the addresses."""


def fake_settings(**changes: Any) -> Settings:
    """Return settings that connect to no service, regardless of the environment."""
    values: dict[str, Any] = {
        "azure_search_endpoint": "http://127.0.0.1:1",
        "azure_search_api_key": "key",
        "DocumentsStorage": "UseDevelopmentStorage=true",
        "openai_base_url": "http://127.0.0.1:1/v1",
        "chat_model": "chat",
        "embedding_model": "embedding",
        "embedding_dimensions": 64,
        "owner_id_key": OWNER_ID_KEY,
        "web_consent": "allow",  # tests of consent set another value
        "budget_preset": "tight",  # test cases of the delegation policy assume these budgets
    }
    return Settings.of(**{**values, **changes})


def fake_services(**replacements: Any) -> Services:
    """Return services with a fake for every port. Fakes that a test needs to inspect can be passed by
    name.
    """
    parts: dict[str, Any] = {
        # Scores of these fakes are so low that every question would start a sub-agent.
        "settings": fake_settings(subagents_enabled=False),
        "content_index": InMemorySearchIndex("block_id"),
        "documents_index": InMemorySearchIndex("doc_id"),
        "memory_index": InMemorySearchIndex("memory_id"),
        "search_admin": InMemorySearchAdmin(),
        "chat_model": ScriptedChatModel(),
        "vision_model": ScriptedChatModel(),
        "embedder": HashingEmbedder(),
        "blobs": InMemoryBlobStore(),
        "run_log": InMemoryRunLog(),
        "runs": InMemoryRunStore(),
        "threads": InMemoryThreadStore(),
        "documents": InMemoryDocumentStore(),
        "poison": InMemoryPoisonQueues(),
        "queues": InMemoryTaskQueues(),
        "directory": InMemoryDirectory(),
        "subagent_control": InMemoryControlStore(),
        "idempotency": InMemoryIdempotencyStore(),
        "user_limits": InMemoryUserLimitStore(),
        "quality": InMemoryQualityStore(),
        "audit": AuditTrail(InMemoryTable()),
        "parser_services": ParserServices(),
        "databases": Databases(),
    }
    return Services(**{**parts, **replacements})
