"""Working memory of one run in the `work` container: one JSON blob per step and kind of result."""

from collections import OrderedDict
from weakref import WeakKeyDictionary

from shared.platform.blobs import BlobStore, keep_model, read_model, write_model
from shared.platform.errors import NotFoundError
from shared.platform.models import Model, Stored
from shared.platform.names import RUN_LOG, WORK
from shared.platform.telemetry import note_fields
from shared.runs.models import RunAnswer, RunRequest

_KEPT = 64  # values in one process: the request, plan and evidence of some twenty runs at once


_recent: WeakKeyDictionary[BlobStore, OrderedDict[str, Model]] = WeakKeyDictionary()


class WorkingMemory:
    """Reads and writes what steps hand on. A step's result is written once, whole: the first one stays."""

    def __init__(self, blobs: BlobStore, run_id: str) -> None:
        self._blobs = blobs
        self._recent = _recent.setdefault(blobs, OrderedDict())
        self.run_id = run_id

    @property
    def folder(self) -> str:
        """How the names of all its blobs begin."""
        return f"runs/{self.run_id}/"

    async def erase(self) -> None:
        """Remove all of it, also what this process remembers."""
        for path in [path for path in self._recent if path.startswith(self.folder)]:
            del self._recent[path]
        await self._blobs.delete_prefix(WORK, self.folder)

    async def put_request(self, request: RunRequest) -> None:
        """Keep the question; done before the orchestration starts."""
        await self.write(None, request)

    async def keep_request(self, request: RunRequest) -> RunRequest:
        """The same for a question that may have come before; gives what is kept, which is the first one."""
        return await self.put(None, request)

    async def request(self) -> RunRequest:
        """The question. NotFoundError when the run was purged."""
        request = await self.get(None, RunRequest)
        note_fields(thread_id=request.thread_id, user_id=request.user.user_id)
        return request

    async def put(self, step: int | None, value: Stored, part: str = "") -> Stored:
        """Keep a result of a step; gives the one that is kept, which may be that of another attempt.

        Here and below `step` None is the question itself.
        """
        path = self._path(step, part)
        kept = await keep_model(self._blobs, WORK, path, value)
        self._note(path, kept)
        return kept

    async def write(self, step: int | None, value: Model, part: str = "") -> None:
        """Keep a result of a step; the last one counts."""
        path = self._path(step, part)
        await write_model(self._blobs, WORK, path, value)
        self._note(path, value)

    async def get(self, step: int | None, kind: type[Stored], part: str = "") -> Stored:
        """A result of a step. NotFoundError when it has none, or the run was purged."""
        path = self._path(step, part)
        known = self._recent.get(path)
        if isinstance(known, kind):
            return known
        value = await read_model(self._blobs, WORK, path, kind)
        self._note(path, value)
        return value

    async def find(self, step: int | None, kind: type[Stored], part: str = "") -> Stored | None:
        """A result of a step, if there is one."""
        try:
            return await self.get(step, kind, part)
        except NotFoundError:
            return None

    def _note(self, path: str, value: Model) -> None:
        self._recent[path] = value
        self._recent.move_to_end(path)
        while len(self._recent) > _KEPT:
            self._recent.popitem(last=False)

    def _path(self, step: int | None, part: str) -> str:
        name = "request" if step is None else f"{step:03d}"
        return f"{self.folder}{name}{f'-{part}' if part else ''}.json"


def answer_path(run_id: str) -> str:
    """Where a run's committed answer lies in the run-log container."""
    return f"{run_id}/answer.json"


async def committed_answer(run_id: str, blobs: BlobStore) -> RunAnswer:
    """The answer of a completed run. NotFoundError when its thread was erased."""
    return await read_model(blobs, RUN_LOG, answer_path(run_id), RunAnswer)
