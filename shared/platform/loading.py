"""Lazy imports. No other module imports anything inside a function.

The Functions host waits until a worker has registered its functions. To keep this short, `function_app`
imports no handler, activity or orchestrator: each is imported on its first call. SDKs that are slow to import
and that many requests never use are loaded here as well.
"""

import asyncio
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

# One lock for all imports: concurrent imports of modules in a cycle would see partly initialised modules.
_lock = threading.RLock()
# Modules in sys.modules may be partly initialised; these are fully imported.
_loaded: dict[str, ModuleType] = {}


def load_module(module: str) -> Any:
    """Return a module, importing it on the first call in a process."""
    if module not in _loaded:
        with _lock, _without_collection():
            _loaded[module] = import_module(module)
    return _loaded[module]


@contextmanager
def _without_collection() -> Iterator[None]:
    """Disable garbage collection during an import. Afterwards, exempt all existing objects from it, because
    modules and classes are never freed.

    Scanning them takes a sixth of the import time, and every full collection would scan them again.
    """
    was_enabled = gc.isenabled()  # garbage collection is already disabled if this import is nested in another
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.enable()


def load(module: str, name: str) -> Any:
    """Return an attribute of a module, importing the module on the first call in a process."""
    return getattr(load_module(module), name)


async def load_async(module: str, name: str) -> Any:
    """Return an attribute of a module, importing it in a thread so that the event loop isn't blocked."""
    return load(module, name) if module in _loaded else await asyncio.to_thread(load, module, name)
