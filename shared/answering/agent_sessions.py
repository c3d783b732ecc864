"""Conversations of the Python API: their history in memory, and the stored run that waits for an answer."""

import hashlib
from collections import OrderedDict
from contextlib import suppress
from datetime import UTC, datetime

from shared.access.models import UserContext
from shared.access.owner_ids import owned_id
from shared.answering.script import Reply, StepResults, next_command
from shared.answering.services import AnsweringServices
from shared.platform.blobs import BlobStore, find_model, write_model
from shared.platform.errors import GroundworkError
from shared.platform.models import Model
from shared.platform.names import RUN_LOG, WORK
from shared.runs.journal import clarification_of
from shared.runs.memory_run_log import MemoryRunLog
from shared.runs.models import Clarification, Conversation, ConversationTurn, RunAnswer
from shared.runs.run_files import RunFiles

# Blob name prefix of stored runs that wait for the user's answer.
SESSIONS = "sessions/"
# Maximum number of sessions that an agent remembers. The least recently used session is evicted.
MAX_SESSIONS = 200
MAX_TURNS = 10
# Maximum length of a question or an answer in the history.
MAX_CHARS = 4000


class SessionHistory:
    """In-memory store of conversations by session id. Each conversation includes whether the user allowed web
    searches.
    """

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, Conversation] = OrderedDict()

    def of(self, session_id: str | None) -> Conversation:
        """Return the conversation of a session, or an empty conversation if the id is None or unknown."""
        return self._sessions.get(session_id or "", Conversation())

    def remember(self, session_id: str, question: str, answer: RunAnswer) -> None:
        """Append a question and its answer to a session, which keeps the last MAX_TURNS turns."""
        names = {cited.doc_id: cited.filename for cited in answer.citations if cited.doc_id}
        turn = ConversationTurn(
            question=question[:MAX_CHARS],
            answer=answer.text[:MAX_CHARS],
            doc_ids=tuple(names),
            filenames=tuple(names.values()),
            block_ids=tuple(dict.fromkeys(cited.block_id for cited in answer.citations if cited.block_id)),
        )
        before = self.of(session_id)
        turns = (*before.turns, turn)[-MAX_TURNS:]
        self._keep(session_id, before.model_copy(update={"turns": turns}))

    def keep_web_consent(self, session_id: str, *, allowed: bool) -> None:
        """Store whether the user allows web searches in this session."""
        self._keep(session_id, self.of(session_id).model_copy(update={"web_allowed": allowed}))

    def _keep(self, session_id: str, conversation: Conversation) -> None:
        self._sessions[session_id] = conversation
        self._sessions.move_to_end(session_id)
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)


class WaitingRun(Model):
    """A stored run that has asked the user a question. The next message of the session is taken as the
    answer.

    Attributes:
        journal: the lines of its journal.
        results: results of the commands that were executed; the script continues after them.
        ask_step: the step that asked the question.
    """

    run_id: str
    journal: tuple[str, ...]
    results: StepResults
    ask_step: int
    clarification: Clarification


class AgentSession:
    """Store for the one run of a session that waits for the user's answer."""

    def __init__(self, services: AnsweringServices, user: UserContext, session_id: str) -> None:
        self.session_id = session_id
        self._blobs = services.blobs
        # Callers choose session ids, so hash them to get a valid blob name. `owned_id` adds the user's
        # prefix.
        unique = hashlib.sha256(f"{user.user_id}\n{session_id}".encode()).hexdigest()
        key = owned_id(user.user_id, services.settings.identity.owner_id_key, unique)
        self._path = f"{SESSIONS}{key}.json"

    async def waiting_run(self) -> WaitingRun | None:
        """Return the run that waits in this session, or None. If its question has expired, delete the run
        first.
        """
        stored = await find_model(self._blobs, WORK, self._path, WaitingRun)
        if stored is None or stored.clarification.expires_at > datetime.now(UTC):
            return stored
        await delete_run(stored.run_id, self._blobs)
        await self.delete()
        return None

    async def store(self, run_id: str, results: StepResults, log: MemoryRunLog) -> None:
        """Store a run whose last command waits for the user's answer, with its journal and results."""
        command = next_command(results)
        assert isinstance(command, Reply)  # noqa: S101  # the caller has checked that the run waits
        clarification, _ = await clarification_of(run_id, command.ask_step, log)
        assert clarification is not None  # noqa: S101  # stored by the step that asked
        waiting = WaitingRun(
            run_id=run_id,
            journal=(await log.read(run_id)).lines,
            results=results,
            ask_step=command.ask_step,
            clarification=clarification,
        )
        await write_model(self._blobs, WORK, self._path, waiting)

    async def delete(self) -> None:
        """Delete the record of the waiting run. Its own files are kept."""
        await self._blobs.delete(WORK, self._path)


async def delete_run(run_id: str, blobs: BlobStore) -> None:
    """Delete all stored files of a run, including its answer. Errors of the storage are ignored."""
    with suppress(GroundworkError):
        await RunFiles(blobs, run_id).erase()
        await blobs.delete_prefix(RUN_LOG, f"{run_id}/")
