"""The Functions app: registers the blueprints, nothing else. Wrong settings stop it right here."""

import azure.durable_functions as df
import azure.functions as func

from functions import (
    agents,
    api_page,
    audit,
    background,
    chat,
    completions,
    document_events,
    documents,
    health,
    ingest,
    maintenance,
    mcp,
    memory,
    metrics,
    pages,
    runs,
    search,
    sharepoint,
    site,
    summaries,
    teams,
    threads,
    uploads,
    users,
    workspace,
    wrong_address,
)
from functions.http.requests import require_settings
from orchestrations import activities, ingest_activities, library_activities, orchestrators, payloads
from shared.platform.memory import keep_memory_low
from shared.platform.settings import get_settings

require_settings()
keep_memory_low()
app = df.DFApp(http_auth_level=func.AuthLevel.ANONYMOUS)

HTTP = (
    agents,
    api_page,
    audit,
    chat,
    completions,
    health,
    mcp,
    memory,
    metrics,
    runs,
    search,
    sharepoint,
    site,
    summaries,
    teams,
    threads,
    users,
    workspace,
    wrong_address,
)
DOCUMENTS = (document_events, documents, pages, uploads)
DURABLE = (orchestrators, activities, ingest_activities, library_activities, payloads)

for module in (*HTTP, *DOCUMENTS, background, ingest, maintenance, *DURABLE):
    app.register_functions(module.blueprint)
if get_settings().sharepoint.addresses:
    app.register_functions(sharepoint.timers)
