"""The FastAPI app behind all HTTP functions. Routers are listed in the order in which the API description
shows them.
"""

import threading
from functools import cache

from fastapi import FastAPI

from functions import (
    agents,
    api_page,
    audit,
    chat,
    completions,
    document_events,
    documents,
    health,
    libraries,
    maintenance,
    mcp,
    memory,
    metrics,
    pages,
    runs,
    search,
    shares,
    site,
    summaries,
    teams,
    thread_files,
    threads,
    uploads,
    users,
    workspace,
)
from functions.http.application import build_app

_RESOURCES = (
    chat,
    runs,
    shares,
    search,
    mcp,
    agents,
    completions,
    # This router must come before `documents`, whose route `/api/documents/{doc_id}` would also match
    # `/api/documents/events`.
    document_events,
    documents,
    pages,
    uploads,
    summaries,
    threads,
    thread_files,
    memory,
    workspace,
    teams,
    site,
    users,
    maintenance,
    libraries,
    audit,
    metrics,
    health,
    api_page,
)
_lock = threading.Lock()


@cache
def _app() -> FastAPI:
    return build_app(module.router for module in _RESOURCES)


def app() -> FastAPI:
    """Return the FastAPI app of this process, building it on the first call."""
    with _lock:  # without the lock, two threads could build the app at the same time
        return _app()
