"""Entry point of the Azure Functions app. Registers every function, and fails at import if the settings are
invalid.
"""

import azure.durable_functions as df
import azure.functions as func

from functions import ingest, triggers
from functions.http.adapter import add_function, preload
from functions.start import require_settings
from orchestrations import ingest_activities, registration
from shared.platform.memory import keep_memory_low
from shared.platform.settings import get_settings

require_settings()
keep_memory_low()
app = df.DFApp(http_auth_level=func.AuthLevel.ANONYMOUS)

# Each resource gets its own function so that monitoring shows them separately. All functions run the same
# ASGI app.
STARTING_WORK = (
    *("chat", "documents", "maintenance", "mcp", "messages", "runs", "summaries"),
    *("threads", "users", "v1"),
)
OTHERS = (
    *("agents", "audit", "health", "me", "memory", "metrics", "search", "sharepoint", "shares", "site"),
    "workspace",
)

for resource in STARTING_WORK:
    add_function(app, resource, f"api/{resource}/{{*rest}}", starts_work=True)
for resource in OTHERS:
    add_function(app, resource, f"api/{resource}/{{*rest}}")
# Serves all remaining URLs: the web page, the API description and 404s. The host matches functions in
# alphabetical order of their names, so `www` must sort last.
add_function(app, "www", "{*path}")

for module in (triggers, ingest, registration, ingest_activities):
    app.register_functions(module.blueprint)
if get_settings().sharepoint.addresses:
    app.register_functions(triggers.sharepoint_blueprint)
preload()
