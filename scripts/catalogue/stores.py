"""The stores, and what each holds of a person. `make docs` writes them into docs/internals/stores.md."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

Kind = Literal["Tables", "Containers", "Indexes", "Queues"]


class Store(NamedTuple):
    """A store, or a folder of a container.

    Attributes:
        content: what it holds of a person.
        erased: `yes` = everything of the person; `on request` = with `--documents`, what is theirs alone;
            `by itself` = it expires.
        how: how it is erased.
    """

    name: str
    content: str
    erased: Literal["yes", "on request", "by itself"]
    how: str


STORES: Mapping[Kind, Sequence[Store]] = {
    "Tables": (
        Store(
            "threads",
            "titles, questions, beginnings of answers, summaries; the key is a digest of their id",
            "yes",
            "turns are emptied at once; all rows of their partition go with the last pass",
        ),
        Store(
            "runs",
            "owner's id, question, rating and comment",
            "yes",
            "found by the beginning of their ids, also without a thread",
        ),
        Store(
            "idempotency",
            "digests of person and key, ids of what was made",
            "yes",
            "the person's partition",
        ),
        Store(
            "userlimits",
            "what they used up today, ids of runs at work",
            "yes",
            "the person's row",
        ),
        Store(
            "botturns",
            "address of a conversation in a chat, ids of runs and messages",
            "yes",
            "the person's partition and the messages that it leads to",
        ),
        Store(
            "audit",
            "who read, changed, published or deleted what, when, from which address",
            "yes",
            (
                "a pseudonym replaces the id and the address is removed; entries go by themselves "
                "after `AUDIT_RETENTION_DAYS`"
            ),
        ),
        Store(
            "quality",
            "numbers of an answer, under a digest of its run; names nobody",
            "yes",
            (
                "found by the run while its id is known; of runs that were deleted before, by "
                "itself after `RUN_RETENTION_DAYS`"
            ),
        ),
        Store(
            "documents",
            "owner and access list of a document",
            "on request",
            "see [what stays](../privacy.md#deleting)",
        ),
        Store(
            "libraries",
            "names of files in synchronised libraries; names nobody",
            "by itself",
            "rows go with their file in SharePoint",
        ),
        Store(
            "subagentcontrol",
            "ids of sub-agents at work, for minutes",
            "by itself",
            "leases end",
        ),
        Store(
            "subagentmetrics",
            "numbers under a digest of a run's step; names nobody",
            "by itself",
            "`RUN_RETENTION_DAYS`",
        ),
    ),
    "Containers": (
        Store(
            "documents",
            "what they uploaded, below a digest of their id; access lists that name them",
            "on request",
            "access lists of uploads that never came go always",
        ),
        Store(
            "run-log",
            "journals and answers of runs",
            "yes",
            "by the run",
        ),
        Store(
            "work",
            "below `runs/`",
            "yes",
            (
                "questions with their asker, large values of journals, states of sub-agents; "
                "found by the beginning of their ids, also without a record"
            ),
        ),
        Store(
            "work",
            "below `summaries/`",
            "yes",
            "summaries of documents, found by the beginning of their ids",
        ),
        Store(
            "work",
            "below `summary-lists/`",
            "yes",
            "ids of summaries, in a folder whose name is a digest of who asked",
        ),
        Store(
            "work",
            "below `sessions/`",
            "yes",
            "questions that wait in a program that uses the agents as a library",
        ),
        Store(
            "work",
            "below `workspaces/`",
            "yes",
            (
                "files that agents wrote for them, in a folder whose name is a digest of their id; "
                "by themselves after a day"
            ),
        ),
        Store(
            "work",
            "below `channel/`",
            "yes",
            "messages in chats that wait for their answer, also where several people read along",
        ),
        Store(
            "work",
            "below `erasures/`",
            "by itself",
            (
                "the person's id while their erasure is at work; then a digest and counts, for "
                "`RUN_RETENTION_DAYS`"
            ),
        ),
        Store(
            "work",
            "below `versions/`",
            "on request",
            "what was made of documents; goes with them",
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
            "access lists that name them",
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
            "handled within seconds; tried for 21 minutes",
        ),
        Store(
            "erasures",
            "owner's id and a thread's, or a digest",
            "by itself",
            "handled within seconds; the second pass of a thread after 15 minutes",
        ),
        Store(
            "turns-poison",
            "the same",
            "yes",
            "messages that name the person",
        ),
        Store(
            "erasures-poison",
            "the same",
            "yes",
            "messages that name the person",
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
            "an operator looks at them and takes them away",
        ),
        Store(
            "deferred-documents",
            "names of files",
            "by itself",
            "started when their sender has fewer files at work",
        ),
        Store(
            "deferred-documents-poison",
            "names of files",
            "by itself",
            "an operator looks at them and takes them away",
        ),
        Store(
            "webjobs-blobtrigger-poison",
            "names of files",
            "by itself",
            "an operator looks at them and takes them away",
        ),
    ),
}
