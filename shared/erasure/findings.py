"""The data that an erasure pass is about to delete, and its counts."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from shared.conversations.models import Thread
from shared.documents.state import DocumentState
from shared.erasure.models import ErasedCounts, OwnDocuments, RunPlace
from shared.summaries.models import SummaryRequest
from shared.teams.store import reply_of


@dataclass(frozen=True)
class ErasureFindings:
    """The data to erase.

    Attributes:
        threads: threads that no earlier pass has hidden.
        runs: found by their records and folders.
        at_work: number of active runs.
        damaged_summaries: ids of summaries without a readable request, with their orchestrations.
        messages: blobs of unanswered chat messages.
        sessions: blobs of clarifications waiting in a program.
        documents: documents to delete; empty unless requested.
        sidecars: access lists of uploads that never arrived.
        kept: documents that stay.
    """

    threads: tuple[Thread, ...]
    runs: tuple[RunPlace, ...]
    at_work: int
    summaries: tuple[SummaryRequest, ...]
    damaged_summaries: Mapping[str, tuple[str, ...]]
    memory_count: int
    messages: tuple[str, ...]
    sessions: tuple[str, ...]
    documents: tuple[DocumentState, ...]
    sidecars: tuple[str, ...]
    kept: OwnDocuments

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found that could have been created since the previous pass."""
        return self.counts() == ErasedCounts()

    @property
    def deleting(self) -> tuple[str, ...]:
        """Documents and uploads whose deletion takes time, so that the next pass may find them again."""
        return (*(one.doc_id for one in self.documents), *self.sidecars)

    def counts(self, counted: Collection[str] = ()) -> ErasedCounts:
        """Return the counts, without the items of `deleting` counted earlier. 0 = counted during deletion."""
        return ErasedCounts(
            threads=len(self.threads),
            runs=len(self.runs),
            runs_at_work=self.at_work,
            summaries=len(self.summaries) + len(self.damaged_summaries),
            memories=self.memory_count,
            chat_messages=len(self.messages),
            sessions=len(self.sessions),
            documents=sum(one.doc_id not in counted for one in self.documents),
            unused_uploads=sum(name not in counted for name in self.sidecars),
        )

    @property
    def instances(self) -> tuple[str, ...]:
        """Orchestrations of summaries and chat replies; those of runs are deleted with the run."""
        children = (
            f"{one.summary_id}:d{index}" for one in self.summaries for index in range(len(one.order.doc_ids))
        )
        damaged = (instance_id for ids in self.damaged_summaries.values() for instance_id in ids)
        replies = (reply_of(name) for name in self.messages)
        return (*(one.summary_id for one in self.summaries), *children, *damaged, *replies)
