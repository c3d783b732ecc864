"""The Functions app: registers the blueprints, nothing else."""

import azure.durable_functions as df
import azure.functions as func

from functions import (
    chat,
    document_changes,
    document_events,
    documents,
    health,
    ingest,
    maintenance,
    memory,
    remember,
    runs,
    search,
    threads,
    uploads,
)
from orchestrations import agent_activities, answer_question, ingest_activities, ingest_document

app = df.DFApp(http_auth_level=func.AuthLevel.ANONYMOUS)

HTTP = (chat, document_changes, document_events, documents, health, memory, runs, search, threads, uploads)
TRIGGERS = (ingest, maintenance, remember)
DURABLE = (answer_question, agent_activities, ingest_document, ingest_activities)

for module in (*HTTP, *TRIGGERS, *DURABLE):
    app.register_functions(module.blueprint)
