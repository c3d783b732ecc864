"""The Functions app: registers the blueprints, nothing else. Wrong settings stop it right here."""

import azure.durable_functions as df
import azure.functions as func

from functions import (
    api_page,
    chat,
    document_changes,
    document_events,
    document_pages,
    documents,
    feedback,
    health,
    ingest,
    maintenance,
    me,
    memory,
    metrics,
    remember,
    runs,
    search,
    summaries,
    teams,
    threads,
    uploads,
    users,
)
from functions.ready import require_settings
from orchestrations.registered import DURABLE

require_settings()
app = df.DFApp(http_auth_level=func.AuthLevel.ANONYMOUS)

HTTP = (api_page, chat, feedback, health, me, memory, metrics, runs, search, summaries, teams, threads, users)
DOCUMENTS = (document_changes, document_events, document_pages, documents, uploads)

for module in (*HTTP, *DOCUMENTS, ingest, maintenance, remember, *DURABLE):
    app.register_functions(module.blueprint)
