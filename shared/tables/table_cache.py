"""Cache on disk for the SQLite files of tables.

Each file belongs to one document version and never changes. Permissions aren't checked here: callers get the
folders of versions from `readable_tables`, which checks them. Unused files are deleted after ten minutes.
"""

import asyncio
import atexit
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from threading import Lock

from shared.platform.blobs import BlobStore
from shared.platform.hashing import digest
from shared.tables.queries import MAX_FILE_BYTES
from shared.tables.table_files import fetch_tables

_KEPT_S = 600.0


class TableCache:
    """A cache of up to `max_bytes` that evicts unused files and then the least recently used ones."""

    def __init__(
        self,
        max_bytes: int = MAX_FILE_BYTES,
        kept_s: float = _KEPT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_bytes = max_bytes
        self._kept_s = kept_s
        self._clock = clock
        self._folder: Path | None = None
        self._used: dict[str, tuple[float, int]] = {}  # time of last use and size, in order of use
        self._lock = Lock()

    async def fetch(self, blobs: BlobStore, folder: str, target: Path) -> None:
        """Place the SQLite file of a version's folder at `target`, from the cache if possible.

        Raises:
            NotFoundError: the version was deleted.
        """
        name = digest(folder)
        if not await asyncio.to_thread(self._take, name, target):
            await fetch_tables(blobs, folder, target)
            await asyncio.to_thread(self._keep, name, target)
        asyncio.get_running_loop().call_later(self._kept_s + 1, self.sweep)

    def sweep(self) -> None:
        """Delete files unused for `kept_s`. Above the size limit, delete the least recently used files."""
        with self._lock:
            size_bytes = sum(size for _, size in self._used.values())
            for name, (used_at, size) in list(self._used.items()):
                if size_bytes > self._max_bytes or self._clock() - used_at > self._kept_s:
                    self._path(name).unlink(missing_ok=True)
                    del self._used[name]
                    size_bytes -= size

    def _take(self, name: str, target: Path) -> bool:
        # The hard link keeps the file readable for a query if the cache deletes it meanwhile.
        with self._lock:
            if name not in self._used:
                return False
            _, size = self._used.pop(name)
            with suppress(OSError):  # another process may have deleted the file
                os.link(self._path(name), target)
                self._used[name] = (self._clock(), size)
                return True
        return False

    def _keep(self, name: str, target: Path) -> None:
        with self._lock:
            if name not in self._used:
                os.link(target, self._path(name))
                self._used[name] = (self._clock(), target.stat().st_size)
        self.sweep()

    def _path(self, name: str) -> Path:
        if self._folder is None:
            self._folder = Path(mkdtemp(prefix="groundwork-tables-"))
            atexit.register(rmtree, self._folder, ignore_errors=True)
        return self._folder / name
