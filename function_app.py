"""The Functions app: registers the blueprints, nothing else."""

import azure.durable_functions as df
import azure.functions as func

from functions import (
    api_page,
    chat,
    document_changes,
    document_events,
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
    threads,
    uploads,
)
from orchestrations.registered import DURABLE

app = df.DFApp(http_auth_level=func.AuthLevel.ANONYMOUS)

HTTP = (api_page, chat, feedback, health, me, memory, metrics, runs, search, summaries, threads)
DOCUMENTS = (document_changes, document_events, documents, uploads)
TRIGGERS = (ingest, maintenance, remember)

for module in (*HTTP, *DOCUMENTS, *TRIGGERS, *DURABLE):
    app.register_functions(module.blueprint)
