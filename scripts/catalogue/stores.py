"""Descriptions of all stores and the personal data in them. `make docs` writes them to
docs/internals/stores.md.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

Kind = Literal["Tables", "Containers", "Indexes", "Queues"]


class Store(NamedTuple):
    """A store, or a folder of a container, with the personal data that it contains.

    Attributes:
        content: the personal data in the store.
        erased: `yes` = all of the user's data; `on request` = with `--documents`, data that only they own;
            `by itself` = the data expires.
        how: method of erasure.
    """

    name: str
    content: str
    erased: Literal["yes", "on request", "by itself"]
    how: str


STORES: Mapping[Kind, Sequence[Store]] = {
    "Tables": (
        Store(
            "threads",
            "titles, questions, beginnings of answers, summaries; keyed by a digest of the user's id",
            "yes",
            "turns are emptied immediately; the last pass deletes all rows of the partition",
        ),
        Store(
            "runs",
            "owner's id, question, rating and comment",
            "yes",
            "found by id prefix, even without a thread",
        ),
        Store(
            "idempotency",
            "digests of user and key, ids of created resources",
            "yes",
            "the user's partition",
        ),
        Store(
            "userlimits",
            "today's usage, ids of active runs",
            "yes",
            "the user's row",
        ),
        Store(
            "botturns",
            "conversation references of chats, ids of runs and messages",
            "yes",
            "the user's partition and the messages that it references",
        ),
        Store(
            "audit",
            "who read, changed, published or deleted what, when, from which IP address",
            "yes",
            (
                "a pseudonym replaces the id and the IP address is removed; entries expire "
                "after `AUDIT_RETENTION_DAYS`"
            ),
        ),
        Store(
            "quality",
            "numbers about an answer and its sub-agents under a digest of its run; no user ids",
            "yes",
            (
                "found by run id while it is known; records of runs deleted before expire "
                "after `RUN_RETENTION_DAYS`"
            ),
        ),
        Store(
            "documents",
            "owner and access list of a document; names of files in progress",
            "on request",
            "see [remaining data](../privacy.md#deleting)",
        ),
        Store(
            "libraries",
            "names of files in synchronised libraries; no user ids",
            "by itself",
            "rows are deleted with their file in SharePoint",
        ),
        Store(
            "subagentcontrol",
            "ids of active sub-agents, for minutes",
            "by itself",
            "leases expire",
        ),
    ),
    "Containers": (
        Store(
            "documents",
            "uploaded files, below a digest of the user's id; access lists with their id",
            "on request",
            "access lists of abandoned uploads are always deleted",
        ),
        Store(
            "documents",
            "below `conversation-files/`: files for one conversation, below the thread's id",
            "yes",
            "with their thread; a person's also by owner",
        ),
        Store(
            "run-log",
            "journals and answers of runs, ids of the documents behind them, shares with their addressees",
            "yes",
            "by run id",
        ),
        Store(
            "work",
            "below `runs/`",
            "yes",
            (
                "questions with the user's id, large journal values, states of sub-agents; "
                "found by id prefix, even without a record"
            ),
        ),
        Store(
            "work",
            "below `shares/`",
            "yes",
            "ids of runs by the random ids of their shares; deleted with the run, or after 90 days",
        ),
        Store(
            "work",
            "below `sessions/`, by owner",
            "yes",
            "waiting questions of programs that use the agents as a library",
        ),
        Store(
            "work",
            "below `workspaces/`",
            "yes",
            (
                "files written by agents, in a folder named by a digest of the user's id; "
                "they expire after a day"
            ),
        ),
        Store(
            "work",
            "below `channel/`, by day and writer",
            "yes",
            "chat messages that wait for an answer, including those in group chats",
        ),
        Store(
            "work",
            "below `erasures/`",
            "by itself",
            (
                "the user's id while their erasure is in progress; then a digest and counts for "
                "`RUN_RETENTION_DAYS`"
            ),
        ),
        Store(
            "work",
            "below `versions/`",
            "on request",
            "artefacts of ingested documents; deleted with the document",
        ),
    ),
    "Indexes": (
        Store(
            "conversation-memory",
            "questions and beginnings of answers",
            "yes",
            "by `user_id`",
        ),
        Store(
            "content-blocks",
            "access lists with the user's id",
            "on request",
            "with the document",
        ),
        Store(
            "documents-metadata",
            "owner and access list",
            "on request",
            "with the document",
        ),
    ),
    "Queues": (
        Store(
            "turns",
            "owner's id, ids of thread and run",
            "by itself",
            "handled within seconds; retried for 21 minutes",
        ),
        Store(
            "erasures",
            "owner's id and a thread's, or a digest",
            "by itself",
            "handled within seconds; the second pass of a thread after 15 minutes",
        ),
        Store(
            "turns-poison",
            "as in the queue",
            "yes",
            "messages with the user's id",
        ),
        Store(
            "erasures-poison",
            "as in the queue",
            "yes",
            "messages with the user's id",
        ),
        Store(
            "blob-deleted",
            "names of files",
            "by itself",
            "handled within seconds",
        ),
        Store(
            "blob-deleted-poison",
            "names of files",
            "by itself",
            "removed by an operator after inspection",
        ),
        Store(
            "ingestions",
            "random tokens; no names",
            "by itself",
            "handled within seconds",
        ),
        Store(
            "ingestions-poison",
            "random tokens; no names",
            "by itself",
            "removed by an operator after inspection",
        ),
        Store(
            "webjobs-blobtrigger-poison",
            "names of files",
            "by itself",
            "removed by an operator after inspection",
        ),
    ),
}
