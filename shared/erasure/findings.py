"""The data that an erasure pass has found and is about to delete, with its counts."""

from collections.abc import Collection
from dataclasses import dataclass

from shared.conversations.models import Thread
from shared.documents.state import DocumentState
from shared.erasure.models import ErasedCounts, OwnDocuments, RunPlace
from shared.teams.store import reply_of


@dataclass(frozen=True)
class ErasureFindings:
    """The data about a person that an erasure pass has found.

    Attributes:
        threads: threads that no earlier pass has hidden.
        runs: runs found by their records or folders.
        at_work: number of active runs.
        summary_count: number of runs that are summaries.
        messages: blobs of unanswered chat messages.
        sessions: blobs of clarifications for which programs wait.
        documents: documents to delete; empty unless requested.
        sidecars: access lists of uploads that never arrived.
        kept_documents: numbers of documents that are kept.
    """

    threads: tuple[Thread, ...]
    runs: tuple[RunPlace, ...]
    at_work: int
    summary_count: int
    memory_count: int
    messages: tuple[str, ...]
    sessions: tuple[str, ...]
    documents: tuple[DocumentState, ...]
    sidecars: tuple[str, ...]
    kept_documents: OwnDocuments

    @property
    def is_empty(self) -> bool:
        """Whether the pass found no data to erase."""
        return self.counts() == ErasedCounts()

    @property
    def deleting(self) -> tuple[str, ...]:
        """Ids of documents and names of uploads whose deletion may outlast the pass, so that the next pass
        may find them again.
        """
        return (*(one.doc_id for one in self.documents), *self.sidecars)

    def counts(self, counted: Collection[str] = ()) -> ErasedCounts:
        """Return the number of items found, by kind. Items of `deleting` that are in `counted` are left out.
        Kinds that are counted during their deletion are 0.
        """
        return ErasedCounts(
            threads=len(self.threads),
            runs=len(self.runs) - self.summary_count,
            runs_at_work=self.at_work,
            summaries=self.summary_count,
            memories=self.memory_count,
            chat_messages=len(self.messages),
            sessions=len(self.sessions),
            documents=sum(one.doc_id not in counted for one in self.documents),
            unused_uploads=sum(name not in counted for name in self.sidecars),
        )

    @property
    def instances(self) -> tuple[str, ...]:
        """Instance ids of the orchestrations that reply to chat messages. The orchestrations of runs are
        deleted with their runs.
        """
        return tuple(reply_of(name) for name in self.messages)
