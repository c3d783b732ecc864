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
            "titles, questions, beginnings of answers, summaries, by a digest of the user's id",
            "yes",
            "turns are emptied immediately, all rows deleted in the last pass",
        ),
        Store(
            "runs",
            "owner's id, question, rating and comment",
            "yes",
            "found by id prefix",
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
            "the user's partition, and the referenced messages",
        ),
        Store(
            "audit",
            "who read, changed, published or deleted what, when, from which IP address",
            "yes",
            "a pseudonym replaces the id, the IP address is removed; expires after `AUDIT_RETENTION_DAYS`",
        ),
        Store(
            "quality",
            "numbers about an answer and its sub-agents under a digest of its run; no user ids",
            "yes",
            "found by run id; expires after `RUN_RETENTION_DAYS` if the run was deleted before",
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
            "deleted with the file in SharePoint",
        ),
        Store(
            "subagentcontrol",
            "ids of active sub-agents",
            "by itself",
            "leases expire within minutes",
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
            "below `conversation-files/`: files of one conversation, below the thread's id",
            "yes",
            "deleted with their thread, or found by owner",
        ),
        Store(
            "run-log",
            "journals and answers of runs, ids of their documents, shares with their addressees",
            "yes",
            "found by run id",
        ),
        Store(
            "work",
            "below `runs/`: questions with the user's id, large journal values, states of sub-agents",
            "yes",
            "found by id prefix",
        ),
        Store(
            "work",
            "below `shares/`: ids of runs",
            "yes",
            "deleted with the run, or after 90 days",
        ),
        Store(
            "work",
            "below `sessions/`, by owner: waiting questions of programs that use the agents as a library",
            "yes",
            "found by owner",
        ),
        Store(
            "work",
            "below `workspaces/`: files written by agents, by a digest of the user's id",
            "yes",
            "found by owner; expires after a day",
        ),
        Store(
            "work",
            "below `channel/`, by day and writer: chat messages waiting for an answer",
            "yes",
            "also messages in group chats",
        ),
        Store(
            "work",
            "below `erasures/`: the user's id during their erasure, then a digest and counts",
            "by itself",
            "expires after `RUN_RETENTION_DAYS`",
        ),
        Store(
            "work",
            "below `versions/`: artefacts of ingested documents",
            "on request",
            "deleted with the document",
        ),
    ),
    "Indexes": (
        Store(
            "conversation-memory",
            "questions and beginnings of answers",
            "yes",
            "found by `user_id`",
        ),
        Store(
            "content-blocks",
            "access lists with the user's id",
            "on request",
            "deleted with the document",
        ),
        Store(
            "documents-metadata",
            "owner and access list",
            "on request",
            "deleted with the document",
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
            "an operator deletes them",
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
            "an operator deletes them",
        ),
        Store(
            "webjobs-blobtrigger-poison",
            "names of files",
            "by itself",
            "an operator deletes them",
        ),
    ),
}
