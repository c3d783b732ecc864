"""The Functions app: registers the blueprints, nothing else. Wrong settings stop it right here."""

import azure.durable_functions as df
import azure.functions as func

from functions import (
    api_page,
    background,
    chat,
    document_events,
    documents,
    feedback,
    health,
    ingest,
    maintenance,
    memory,
    metrics,
    pages,
    runs,
    search,
    summaries,
    teams,
    threads,
    uploads,
    users,
)
from functions.http.requests import require_settings
from orchestrations.registered import DURABLE

require_settings()
app = df.DFApp(http_auth_level=func.AuthLevel.ANONYMOUS)

HTTP = (api_page, chat, feedback, health, memory, metrics, runs, search, summaries, teams, threads, users)
DOCUMENTS = (document_events, documents, pages, uploads)

for module in (*HTTP, *DOCUMENTS, background, ingest, maintenance, *DURABLE):
    app.register_functions(module.blueprint)
