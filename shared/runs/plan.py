"""The todo list of a run and its state transitions. Pure: each function returns an updated copy.

An item starts when all of its dependencies are done. Items that others depend on are about finding
information, so they are done when evidence is found. The others are done when the answer is.
"""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from shared.platform.models import Model

QueryType = Literal[
    "LISTING", "CONTENT_SEARCH", "DOCUMENT_SUMMARY", "METADATA_SEARCH", "COMPARISON", "CONVERSATION"
]
QueryIntent = Literal[
    "fact_lookup", "doc_summary", "compare_docs", "evidence_trace", "exploratory", "procedural"
]
TodoStatus = Literal["pending", "in_progress", "done", "failed"]


class PlannedTodo(Model):
    """One todo item as proposed by the model."""

    description: str = Field(description="An outcome, not an activity: 'The pressure limit is known'.")
    acceptance_criteria: str = Field(description="How to tell that it is done.")
    dependencies: tuple[int, ...] = Field(description="Positions (from 1) of items that must be done first.")


FilterField = Literal[
    "file_type", "document_type", "department", "author", "tags", "language", "upload_date", "document_date"
]
DATE_FIELDS: frozenset[FilterField] = frozenset({"upload_date", "document_date"})


class PlanFilter(Model):
    """A condition that documents must meet in a listing or a metadata search."""

    field: FilterField
    values: tuple[str, ...] = Field(
        description="Any of these. For dates: the first and last day, YYYY-MM-DD; an open end is empty."
    )


class QuestionPlan(Model):
    """The plan of a question.

    Attributes:
        language: ISO 639-1 code of the language to answer in; empty = unknown.
        standalone_question: the question with pronouns and ellipsis resolved.
        reply: the reply to a CONVERSATION; empty for every other type.
        search_queries: further searches, besides the question itself.
        filters: properties that the documents of a LISTING, a METADATA_SEARCH or `every` must have.
        document_references: documents that the question names, as it names them.
        needs_tables: whether the answer requires calculating with rows of spreadsheets.
        missing_subject: what neither the question nor the conversation says, such as "which team"; or empty.
        every: the kind of documents that are all meant, such as "annual reports 2023"; or empty.
    """

    query_type: QueryType
    intent: QueryIntent
    language: str
    standalone_question: str
    reply: str
    search_queries: tuple[str, ...]
    filters: tuple[PlanFilter, ...]
    document_references: tuple[str, ...]
    # The next three fields need defaults, because plans stored by older versions lack them.
    needs_tables: bool = False
    missing_subject: str = ""
    every: str = ""
    todo: tuple[PlannedTodo, ...]


class TodoItem(Model):
    """One item of a run's todo list, with its progress."""

    position: int = Field(description="Position in the list, counted from 1.")
    description: str = Field(description="Outcome to achieve.")
    acceptance_criteria: str = Field(description="Condition for completing the item.")
    dependencies: tuple[int, ...] = Field(
        default=(), description="Positions of items that must be done first."
    )
    status: TodoStatus = Field(default="pending", description="Progress of the item.")
    attempts: int = Field(default=0, description="Number of attempts.")


Todo = tuple[TodoItem, ...]


def start_ready(todo: Sequence[TodoItem]) -> Todo:
    """Mark pending items as in progress if all their dependencies are done."""
    done = {item.position for item in todo if item.status == "done"}
    return tuple(
        _with_status(item, "in_progress")
        if item.status == "pending" and done.issuperset(item.dependencies)
        else item
        for item in todo
    )


def complete_lookups(todo: Sequence[TodoItem]) -> Todo:
    """Mark the items in progress that other items depend on as done, then start the items that have become
    ready.
    """
    needed = {position for item in todo for position in item.dependencies}
    updated = tuple(
        _with_status(item, "done") if item.status == "in_progress" and item.position in needed else item
        for item in todo
    )
    return start_ready(updated)


def count_attempt(todo: Sequence[TodoItem]) -> Todo:
    """Increase the attempt count of each item in progress."""
    return tuple(
        item.model_copy(update={"attempts": item.attempts + 1}) if item.status == "in_progress" else item
        for item in todo
    )


def close_todo(todo: Sequence[TodoItem], *, succeeded: bool) -> Todo:
    """Mark all items as done or failed at the end of a run. After a failure, even items that were already
    done become failed.
    """
    return tuple(_with_status(item, "done" if succeeded else "failed") for item in todo)


def _with_status(item: TodoItem, status: TodoStatus) -> TodoItem:
    return item.model_copy(update={"status": status, "attempts": max(item.attempts, 1)})
