"""Lazy loading: the only place that imports a module later than its file's first lines say.

The host waits for a worker until its functions are registered. So `function_app` imports no handler, activity
or orchestrator: each is imported, with everything at the top of its file, when it is called first. SDKs that
take long to import and that many requests never use are loaded here as well.
"""

import asyncio
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

# One lock: two threads that import modules of one cycle at the same time see them half made.
_lock = threading.RLock()
_loaded: dict[str, ModuleType] = {}  # whole modules only, unlike sys.modules


def load_module(module: str) -> Any:
    """Return a module; the first call in a process imports it."""
    if module not in _loaded:
        with _lock, _without_collection():
            _loaded[module] = import_module(module)
    return _loaded[module]


@contextmanager
def _without_collection() -> Iterator[None]:
    """Pause the garbage collector, then exempt all objects from it: modules and their classes stay.

    Scanning them takes a sixth of the import, and would be repeated by each full collection.
    """
    was_enabled = gc.isenabled()  # False inside the import of another module
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.enable()


def load(module: str, name: str) -> Any:
    """Return an attribute of a module, which the first call in a process imports."""
    return getattr(load_module(module), name)


async def load_async(module: str, name: str) -> Any:
    """Return an attribute of a module without blocking the event loop during the import."""
    return load(module, name) if module in _loaded else await asyncio.to_thread(load, module, name)
