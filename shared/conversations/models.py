"""Models of threads, turns and episodic memory, as stored and as sent over HTTP."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from shared.platform.models import Model
from shared.runs.models import ID_PATTERN, Feedback, RunAnswer, RunStatus

# Maximum length of a title, which fits on one line of a list.
MAX_TITLE_CHARS = 120
Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TITLE_CHARS)]


class ActiveRun(Model):
    """Run of a thread that is in progress, or waits for a reply to a clarification."""

    run_id: str = Field(description="Id of the run.")
    status: Literal["running", "waiting"] = Field(description="Status of the run.")


class Thread(Model):
    """Stored thread of a user. Its turns are numbered from 1, and the numbers of cleared turns aren't reused.

    Attributes:
        updated_at: time of the last question or of creation.
        turn_count: number of the newest turn.
        cleared_count: turns up to this number are cleared and hidden.
        erased_count: turns up to this number are erased from every store.
        summary: covers the turns from `cleared_count` to `summarised_count`.
        family: id shared by threads with common turns; empty = no branches.
        web_allowed: the owner's consent to web search; None = never asked.
        active_run: the newest run while it is working or waiting for a reply.
        has_files: whether the thread got files of its own since it was cleared; also after they expired.
        is_deleted: hidden, until everything in it is erased.
        revision: changes with every write; None before the first.
    """

    thread_id: str
    owner_id: str
    title: str = ""
    created_at: datetime
    updated_at: datetime
    turn_count: int = 0
    cleared_count: int = 0
    erased_count: int = 0
    summary: str = ""
    summarised_count: int = 0
    family: str = ""
    web_allowed: bool | None = None
    active_run: ActiveRun | None = None
    has_files: bool = False
    is_deleted: bool = False
    revision: str | None = None


class ThreadTurn(Model):
    """Stored turn of a thread, reduced to the data that later questions need. The complete answer is stored
    with its run.

    Attributes:
        answer: excerpt of the answer; empty until it is committed.
        status: "erased" after the thread was cleared or deleted, when no answer is accepted any more.
        is_remembered: whether episodic memory has stored the turn, or skipped it because it is an abstention.
        replaces: the run whose question this turn repeats.
        with_files: whether the thread had files of its own. The answer, or a later one, may quote them, so it
            is neither remembered nor copied into a branch.
    """

    thread_id: str
    number: int
    run_id: str
    question: str
    asked_at: datetime
    status: Literal["asked", "answered", "erased"] = "asked"
    answer: str = ""
    doc_ids: tuple[str, ...] = ()
    filenames: tuple[str, ...] = ()
    block_ids: tuple[str, ...] = ()
    is_remembered: bool = False
    replaces: str | None = None
    with_files: bool = False
    revision: str | None = None

    def is_shown_in(self, thread: Thread) -> bool:
        """Return whether the owner still sees the turn in this thread, because it wasn't cleared."""
        return self.number > thread.cleared_count and self.status != "erased"


class ThreadPage(Model):
    """A page of threads, most recently used first. `cursor` leads to the next page and is None at the end."""

    threads: tuple[Thread, ...]
    cursor: str | None = None


class Branch(Model):
    """Start of a branch: one of the caller's threads, and the last of its runs that the branch includes."""

    thread_id: str = Field(pattern=ID_PATTERN, description="Id of the thread from which the branch starts.")
    run_id: str = Field(pattern=ID_PATTERN, description="Id of the last run that the branch includes.")


class NewThread(Model):
    """Body of POST /api/threads."""

    title: Title | None = Field(
        default=None, description="Title of the thread. If omitted, the first question becomes the title."
    )
    branch: Branch | None = Field(
        default=None, description="Thread whose turns the new thread copies, and the last run to copy."
    )


class ThreadRename(Model):
    """Body of PATCH /api/threads/{thread_id}."""

    title: Title = Field(description="New title of the thread.")


class ThreadView(Model):
    """A thread as shown to its owner. `turn_count` counts the visible turns.

    Attributes:
        active_run: in lists: the newest run if it is active, otherwise None.
    """

    thread_id: str = Field(description="Id of the thread.")
    title: str = Field(description="Title of the thread.")
    created_at: datetime = Field(description="Time at which the thread was created.")
    updated_at: datetime = Field(description="Time of the last question.")
    turn_count: int = Field(description="Number of questions in the thread.")
    active_run: ActiveRun | None = None


class ThreadList(Model):
    """Response of GET /api/threads."""

    threads: tuple[ThreadView, ...] = Field(description="The threads of this page.")
    count: int = Field(description="Number of threads on this page.")
    cursor: str | None = Field(default=None, description="Cursor of the next page; null at the end.")


class RunItem(Model):
    """Entry for a run in a list. GET /api/runs/{run_id} returns its answer."""

    run_id: str = Field(description="Id of the run.")
    thread_id: str = Field(description="Id of the thread.")
    question: str = Field(description="The question.")
    status: RunStatus = Field(description="Status of the run.")
    created_at: datetime = Field(description="Time at which the run was created.")
    finished_at: datetime | None = Field(description="Time at which the run ended; null until then.")
    error_type: str | None = Field(description="Error code; null if the run did not fail.")


class RunList(Model):
    """Response of GET /api/runs, newest first."""

    runs: tuple[RunItem, ...] = Field(description="The runs of this page.")
    count: int = Field(description="Number of runs on this page.")
    cursor: str | None = Field(default=None, description="Cursor of the next page; null at the end.")


class AnsweredClarification(Model):
    """A clarification that a run requested, and the owner's reply.

    Attributes:
        answer: labels of the chosen options, or the owner's text; empty if no reply arrived in time.
    """

    question: str = Field(description="The clarifying question.")
    answer: str


class ThreadMessage(Model):
    """Turn of a thread as shown to its owner: the question, and the answer once it is stored.

    Attributes:
        clarification: the run's last clarification, if answered and while the run's log exists.
        replaces: the run whose question this run repeats: an earlier version of the turn.
    """

    run_id: str = Field(description="Id of the run.")
    number: int = Field(description="Position in the thread, counted from 1.")
    question: str = Field(description="The question.")
    status: RunStatus = Field(description="Status of the run.")
    created_at: datetime = Field(description="Time at which the question was asked.")
    finished_at: datetime | None = Field(
        default=None, description="Time at which the run ended; null until then."
    )
    error: str | None = Field(
        default=None, description="Explanation of the failure; null if the run did not fail."
    )
    error_type: str | None = Field(default=None, description="Error code; null if the run did not fail.")
    answer: RunAnswer | None = Field(default=None, description="The answer, once it is committed.")
    clarification: AnsweredClarification | None = None
    replaces: str | None = None
    feedback: Feedback | None = Field(default=None, description="The owner's rating; null if there is none.")


class MessageList(Model):
    """Response of GET /api/threads/{thread_id}/messages, oldest first; `cursor` leads to older ones."""

    thread_id: str = Field(description="Id of the thread.")
    messages: tuple[ThreadMessage, ...] = Field(description="The turns of this page, oldest first.")
    count: int = Field(description="Number of turns on this page.")
    cursor: str | None = Field(default=None, description="Cursor of the next page; null at the end.")


class RememberTask(Model):
    """Message in the queue `turns`, which asks episodic memory to store an answered turn. `tries` counts
    failed attempts.
    """

    owner_id: str
    thread_id: str
    run_id: str
    tries: int = 0


class EraseTask(Model):
    """Message in the queue `erasures`: erase the cleared or deleted turns of a thread.

    Attributes:
        through: number of the last turn.
        is_last: the second pass, after all active steps have ended.
    """

    owner_id: str
    thread_id: str
    through: int
    is_last: bool = False


class ConversationSummary(Model):
    """Structured output of the model call that summarises the older turns of a thread."""

    summary: str = Field(description="Summary of question and answer.")


class Memory(Model):
    """Memory of an earlier turn. `memory_id` is the id of the turn's run, and `score` (0-1) is only set by
    searches.

    Attributes:
        answer_summary: also empty if the answer cites a document that the owner can no longer read.
        doc_ids: documents that the answer cites, for that check only.
    """

    memory_id: str = Field(description="Id of the memory.")
    thread_id: str = Field(description="Id of the thread.")
    question: str = Field(description="The remembered question.")
    answer_summary: str
    created_at: datetime = Field(description="Time at which the question was asked.")
    score: float | None = Field(
        default=None, description=("Relevance to the search from 0 to 1; null in lists.")
    )
    doc_ids: tuple[str, ...] = Field(default=(), exclude=True)


class MemorySwitch(Model):
    """Body and response of PUT /api/memory."""

    is_on: bool = Field(description="Whether the user's questions are remembered and recalled.", strict=True)


class MemoryList(Model):
    """Response of GET /api/memory, newest first; `cursor` leads to older ones.

    Attributes:
        is_on: whether questions are remembered and recalled.
    """

    memories: tuple[Memory, ...] = Field(description="The remembered questions of this page.")
    count: int = Field(description="Number of memories on this page.")
    cursor: str | None = Field(default=None, description="Cursor of the next page; null at the end.")
    is_on: bool = True


class MemoriesDeleted(Model):
    """Response of DELETE /api/memory."""

    deleted: int = Field(description="Number of deleted memories.")
