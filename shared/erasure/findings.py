"""What a pass of an erasure is about to delete, and its counts."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from shared.conversations.models import Thread
from shared.documents.state import DocumentState
from shared.erasure.models import ErasedCounts, OwnDocuments, RunPlace
from shared.summaries.models import SummaryRequest
from shared.teams.store import reply_of


@dataclass(frozen=True)
class ErasureFindings:
    """What is to be erased.

    Attributes:
        threads: those that no earlier pass took out of sight.
        runs: by their records and their folders.
        at_work: how many of the runs.
        damaged_summaries: ids of those without a readable request, with their orchestrations.
        messages: blobs of chat messages that wait for their answer.
        sessions: blobs of questions that wait in a program.
        documents: that are to be deleted; empty unless it was asked for.
        sidecars: blobs with access lists of uploads that never came.
        kept: what stays of documents.
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
        """Whether nothing has to go that somebody could have made since the pass before."""
        return self.counts() == ErasedCounts()

    @property
    def deleting(self) -> tuple[str, ...]:
        """What goes by and by, so that the next pass may find it again."""
        return (*(one.doc_id for one in self.documents), *self.sidecars)

    def counts(self, counted: Collection[str] = ()) -> ErasedCounts:
        """The same in numbers, without those of `deleting` that were counted. 0: counted as it goes."""
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
        """The orchestrations of summaries, and of replies to chat messages; those of runs go with the run."""
        children = (
            f"{one.summary_id}:d{index}" for one in self.summaries for index in range(len(one.order.doc_ids))
        )
        damaged = (instance_id for ids in self.damaged_summaries.values() for instance_id in ids)
        replies = (reply_of(name) for name in self.messages)
        return (*(one.summary_id for one in self.summaries), *children, *damaged, *replies)
