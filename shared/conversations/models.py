"""Episodic memory: a person's own past questions, each with what was answered."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from shared.platform.models import Model
from shared.runs.models import ID_PATTERN, Feedback, RunAnswer, RunStatus

MAX_TITLE_CHARS = 120  # what a list shows in one line
Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TITLE_CHARS)]


class ActiveRun(Model):
    """A run that works, or waits for its owner to choose."""

    run_id: str = Field(description="The run.")
    status: Literal["running", "waiting"] = Field(description="How far it is.")


class Thread(Model):
    """A thread as it is stored. Turns are counted from 1; the numbers of cleared ones are not used again.

    Attributes:
        updated_at: when its last question was asked, or it was made.
        turn_count: number of its newest turn.
        cleared_count: turns up to this number are cleared; nobody sees them.
        erased_count: turns up to this number are gone from every store.
        summary: what the turns from `cleared_count` up to `summarised_count` were about.
        family: the same in threads that share turns, by branching; empty = it shares none.
        web_allowed: whether its questions may use the web, as its owner answered; None = never asked.
        active_run: its newest run, while that works or waits for a reply.
        is_deleted: nobody sees it; it stays until everything of it is gone.
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
    is_deleted: bool = False
    revision: str | None = None


class ThreadTurn(Model):
    """A turn as it is stored: what later questions need of it; the answer itself lies with its run.

    Attributes:
        answer: excerpt of the answer's text; empty until there is one.
        status: "erased" when the thread was cleared or deleted: no answer is taken any more.
        is_remembered: episodic memory has it, or doesn't want it: an abstention says nothing worth recalling.
        replaces: the run whose question this turn asks again.
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
    revision: str | None = None


class ThreadPage(Model):
    """Threads, the one that was last asked in first. `cursor` leads to the next ones; None at the end."""

    threads: tuple[Thread, ...]
    cursor: str | None = None


class Branch(Model):
    """Where a thread branches off: another thread of the caller's, and the last run that is taken over."""

    thread_id: str = Field(pattern=ID_PATTERN, description="The thread.")
    run_id: str = Field(pattern=ID_PATTERN, description="The run.")


class NewThread(Model):
    """Body of POST /api/threads."""

    title: Title | None = Field(default=None, description="Left out: the first question becomes the title.")
    branch: Branch | None = Field(
        default=None, description="Begin with the turns of another thread, up to a run."
    )


class ThreadRename(Model):
    """Body of PATCH /api/threads/{thread_id}."""

    title: Title = Field(description="Title.")


class ThreadView(Model):
    """A thread as its owner sees it. `turn_count` counts what is to be seen.

    Attributes:
        active_run: its newest one, in lists; None where none is at work.
    """

    thread_id: str = Field(description="The thread.")
    title: str = Field(description="Title.")
    created_at: datetime = Field(description="When it began.")
    updated_at: datetime = Field(description="When it was last asked in.")
    turn_count: int = Field(description="How many questions were asked in it.")
    active_run: ActiveRun | None = None


class ThreadList(Model):
    """Answer of GET /api/threads."""

    threads: tuple[ThreadView, ...] = Field(description="The threads of this page.")
    count: int = Field(description="How many.")
    cursor: str | None = Field(default=None, description="Leads to the next page; null at the end.")


class RunItem(Model):
    """A run in a list. Its answer: GET /api/runs/{run_id}."""

    run_id: str = Field(description="The run.")
    thread_id: str = Field(description="The thread.")
    question: str = Field(description="The question, as it was asked.")
    status: RunStatus = Field(description="How far it is.")
    created_at: datetime = Field(description="When it began.")
    finished_at: datetime | None = Field(description="When it ended; null until then.")
    error_type: str | None = Field(description="Code of the error; null if there is none.")


class RunList(Model):
    """Answer of GET /api/runs, newest first."""

    runs: tuple[RunItem, ...] = Field(description="The runs of this page.")
    count: int = Field(description="How many.")
    cursor: str | None = Field(default=None, description="Leads to the next page; null at the end.")


class AnsweredClarification(Model):
    """A clarifying question of a run and its owner's reply.

    Attributes:
        answer: the labels of the chosen options, or the owner's own words; empty if no reply came in time.
    """

    question: str = Field(description="What was asked.")
    answer: str


class ThreadMessage(Model):
    """One turn as its owner sees it: the question, and the answer once it is committed.

    Attributes:
        clarification: the run's last clarifying question, once it is answered and while its log is kept.
        replaces: the run whose question this run asks again: an earlier version of the turn.
    """

    run_id: str = Field(description="The run.")
    number: int = Field(description="Place in the thread, counted from 1.")
    question: str = Field(description="The question, as it was asked.")
    status: RunStatus = Field(description="How far it is.")
    created_at: datetime = Field(description="When it began.")
    finished_at: datetime | None = Field(default=None, description="When it ended; null until then.")
    error: str | None = Field(default=None, description="Why it failed, for people; null if it did not.")
    error_type: str | None = Field(default=None, description="Code of the error; null if there is none.")
    answer: RunAnswer | None = Field(default=None, description="The answer, once it is committed.")
    clarification: AnsweredClarification | None = None
    replaces: str | None = None
    feedback: Feedback | None = Field(
        default=None, description="What its owner says of the answer; null if nothing."
    )


class MessageList(Model):
    """Answer of GET /api/threads/{thread_id}/messages: oldest first; `cursor` leads to older ones."""

    thread_id: str = Field(description="The thread.")
    messages: tuple[ThreadMessage, ...] = Field(description="The turns of this page, oldest first.")
    count: int = Field(description="How many.")
    cursor: str | None = Field(default=None, description="Leads to the next page; null at the end.")


class RememberTask(Model):
    """Message of the queue `turns`: a turn was answered. `tries` counts those that failed."""

    owner_id: str
    thread_id: str
    run_id: str
    tries: int = 0


class EraseTask(Model):
    """Message of the queue `erasures`: turns of a thread are to go.

    Attributes:
        through: the number of the last one.
        is_last: the second pass, after every step that was still at work has ended.
    """

    owner_id: str
    thread_id: str
    through: int
    is_last: bool = False


class ConversationSummary(Model):
    """Structured output of the call that compresses older turns."""

    summary: str = Field(description="Question and answer, shortened.")


class Memory(Model):
    """One remembered turn. `memory_id` is the run's id; `score` (0-1) is there when it was searched for.

    Attributes:
        answer_summary: empty as well when a document that the answer cites is not open to its owner any more.
        doc_ids: the documents that the answer cites; for that check, and shown to nobody.
    """

    memory_id: str = Field(description="The memory's id.")
    thread_id: str = Field(description="The thread.")
    question: str = Field(description="The question that is remembered.")
    answer_summary: str
    created_at: datetime = Field(description="When it began.")
    score: float | None = Field(default=None, description="How well it fits; null in lists.")
    doc_ids: tuple[str, ...] = Field(default=(), exclude=True)


class MemorySwitch(Model):
    """Body and answer of PUT /api/memory."""

    is_on: bool = Field(description="Whether questions are remembered, and recalled.", strict=True)


class MemoryList(Model):
    """Answer of GET /api/memory, newest first; `cursor` leads to older ones.

    Attributes:
        is_on: whether questions are remembered, and recalled.
    """

    memories: tuple[Memory, ...] = Field(description="The remembered questions of this page.")
    count: int = Field(description="How many.")
    cursor: str | None = Field(default=None, description="Leads to the next page; null at the end.")
    is_on: bool = True


class MemoriesDeleted(Model):
    """Answer of DELETE /api/memory."""

    deleted: int = Field(description="How many there were.")
