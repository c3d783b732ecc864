"""Determines which files of a question's thread are ready, which are still being read, and which failed.

A question waits for files that are still being read, for at most 20 s: the preparation ends and is repeated
by a durable timer, which holds no worker. The run's time begins after the wait.
"""

from dataclasses import dataclass
from datetime import datetime

from shared.answering.planning import default_plan
from shared.conversations.services import ConversationServices
from shared.evidence.messages import messages_in
from shared.evidence.reader_text import readable_line
from shared.ingestion.thread_files import stored_files
from shared.runs.evidence import ReadFile, StoredPlan
from shared.runs.models import RunRequest
from shared.runs.provenance import UsedDocument

FILES_WAIT_S = 20.0
# Delay before the first check. By then, a short text file has usually been read.
_FIRST_DELAY_S = 1.0
_LONGEST_DELAY_S = 4.0


@dataclass(frozen=True)
class QuestionFiles:
    """The files attached to a question's thread, grouped by status.

    Attributes:
        ready: files that can be searched, oldest first. A new version may still be in progress.
        unread: names of files that are still being read.
        failed: names of files that couldn't be read.
    """

    ready: tuple[ReadFile, ...] = ()
    unread: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the files that can be searched."""
        return tuple(file.filename for file in self.ready)

    def delay_s(self, request: RunRequest, now: datetime) -> float | None:
        """Return the seconds to wait before the files are checked again, or None if the wait is over."""
        waited_s = max(0.0, (now - request.created_at).total_seconds())
        if not self.unread or waited_s >= FILES_WAIT_S:
            return None
        delay_s = min(max(_FIRST_DELAY_S, waited_s / 2), _LONGEST_DELAY_S)
        return min(delay_s, FILES_WAIT_S - waited_s)

    def plan_after_wait(self, request: RunRequest, now: datetime) -> StoredPlan:
        """Return a rule-based plan for a question that waited for its files. The run's time limit is counted
        from `now`.
        """
        return self.added_to(StoredPlan(plan=default_plan(request.question)), now)

    def added_to(self, stored: StoredPlan, resumed_at: datetime | None) -> StoredPlan:
        """Return the plan with the files that can be searched, and with a warning for each file that
        can't.
        """
        words = messages_in(stored.plan.language)
        warnings = (
            *(words.file_unread.format(readable_line(name)) for name in self.unread),
            *(words.file_failed.format(readable_line(name)) for name in self.failed),
        )
        update = {
            "files": self.ready,
            "warnings": (*stored.warnings, *warnings),
            "resumed_at": resumed_at,
        }
        return stored.model_copy(update=update)


NO_FILES = QuestionFiles()


async def files_in_question(request: RunRequest, services: ConversationServices) -> QuestionFiles:
    """Return the files attached to the question's thread, grouped by status.

    Raises:
        DependencyError: a store failed.
    """
    ready: list[ReadFile] = []
    unread: list[str] = []
    failed: list[str] = []
    for file in await stored_files(request.thread_id, services):
        state = file.state
        if file.blob is None:
            continue  # an upload that was announced but may never arrive
        if state is not None and state.content_hash:
            document = UsedDocument(doc_id=state.doc_id, version=state.version)
            ready.append(ReadFile(document=document, filename=file.filename))
        elif state is not None and state.status == "failed":
            failed.append(file.filename)
        else:
            unread.append(file.filename)
    return QuestionFiles(tuple(ready), tuple(unread), tuple(failed))
