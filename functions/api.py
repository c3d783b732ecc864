"""The app behind all HTTP functions: every router, in the order in which the description shows its routes."""

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
    document_events,  # before `documents/{doc_id}`, which would match its path
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
    """Return the process's app."""
    with _lock:  # `cache` would let two threads build the app
        return _app()
