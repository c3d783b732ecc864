"""Loading of modules that registration does not need: all of them behind one lock.

The host waits for a worker until its functions are registered. So `function_app` imports no handler, activity
or orchestrator: each is imported, with everything at the top of its file, when it is called first.
"""

import asyncio
import threading
from importlib import import_module
from types import ModuleType
from typing import Any

# One lock: two threads that import modules of one cycle at the same time see them half made.
_lock = threading.RLock()
_loaded: dict[str, ModuleType] = {}  # whole modules only, unlike sys.modules


def load(module: str, name: str) -> Any:
    """Return what a module defines under a name; the first call in a process imports the module."""
    if module not in _loaded:
        with _lock:
            _loaded[module] = import_module(module)
    return getattr(_loaded[module], name)


async def load_async(module: str, name: str) -> Any:
    """Return the same. The event loop is not held up while the module is imported."""
    return load(module, name) if module in _loaded else await asyncio.to_thread(load, module, name)
