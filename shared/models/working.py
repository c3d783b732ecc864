"""The working memory of a run: what steps hand to later steps, kept in blobs, never in a history."""

from datetime import datetime

from shared.models.base import Model
from shared.models.clarification import ClarificationOption
from shared.models.documents import DocumentRecord
from shared.models.identity import UserContext
from shared.models.plan import QuestionPlan
from shared.models.search import Hit


class StoredPlan(Model):
    """The plan whole; the loop's state carries only its type, intent and todo list.

    Attributes:
        resolved: whether it is known which documents the plan's references mean; `doc_ids` are these, and
            empty when they mean none.
        is_choice: a person chose the documents: no search may leave them.
        reference, options: a reference that may mean each of several documents, and these.
        resumed_at: when the run went on after a wait for a person; None = it did not wait.
        asker: whose rights count since then; None = those that the question came with.
        warnings: what did not go as it should, in words.
    """

    plan: QuestionPlan
    resolved: bool = False
    doc_ids: tuple[str, ...] = ()
    is_choice: bool = False
    reference: str = ""
    options: tuple[ClarificationOption, ...] = ()
    resumed_at: datetime | None = None
    asker: UserContext | None = None
    warnings: tuple[str, ...] = ()


class Evidence(Model):
    """What an answer may be written from.

    Attributes:
        hits: blocks, best first; empty for listing and metadata questions.
        records: metadata of every document that occurs; for listings in the order to show.
        total: how many documents there are in all, where `records` are the first of them; else None.
        warnings: what did not go as it should, in words.
        unfinished: the search was not waited for to its end, so that nothing here says nothing.
    """

    hits: tuple[Hit, ...] = ()
    records: tuple[DocumentRecord, ...] = ()
    narrowed: bool = False
    total: int | None = None
    warnings: tuple[str, ...] = ()
    unfinished: bool = False
