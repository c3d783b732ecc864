"""The working memory of a run: what steps hand to later steps, kept in blobs, never in a history."""

from shared.models.base import Model
from shared.models.documents import DocumentRecord
from shared.models.plan import QuestionPlan
from shared.models.search import Hit


class StoredPlan(Model):
    """The plan whole; the loop's state carries only its type, intent and todo list."""

    plan: QuestionPlan


class Evidence(Model):
    """What an answer may be written from.

    Attributes:
        hits: blocks, best first; empty for listing and metadata questions.
        records: metadata of every document that occurs; for listings in the order to show.
        total: how many documents there are in all, where `records` are the first of them; else None.
    """

    hits: tuple[Hit, ...] = ()
    records: tuple[DocumentRecord, ...] = ()
    narrowed: bool = False
    total: int | None = None
