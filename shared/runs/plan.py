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
        description="Any of these. Of a date: its first and last day, YYYY-MM-DD; an open end is empty."
    )


class QuestionPlan(Model):
    """Structured output of the planning call; every field is required."""

    query_type: QueryType
    intent: QueryIntent
    language: str = Field(description="ISO 639-1 code of the language to answer in.")
    standalone_question: str = Field(
        description="The question with pronouns and ellipsis resolved; empty if it stands alone already."
    )
    reply: str = Field(description="Of CONVERSATION: what to say. Empty for every other type.")
    search_queries: tuple[str, ...] = Field(
        description="Up to 6 short searches besides the question itself; none for a plain fact."
    )
    filters: tuple[PlanFilter, ...] = Field(description="Of LISTING and METADATA_SEARCH; else none.")
    document_references: tuple[str, ...] = Field(
        description="Documents that the question names: file names, titles, or how it calls them."
    )
    needs_tables: bool = Field(
        default=False,  # plans that an older version stored have none
        description="Whether rows of spreadsheets must be calculated with: sums, counts, averages, rankings.",
    )
    missing_subject: str = Field(
        default="",  # plans that an older version stored have none
        description="What neither question nor conversation gives, such as 'which team'; else empty.",
    )
    every: str = Field(
        default="",  # plans that an older version stored have none
        description="Kind of documents that are all meant, such as 'annual reports 2023'; else empty.",
    )
    todo: tuple[PlannedTodo, ...] = Field(description="2-4 items; none where there is one thing to do.")


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


def started(todo: Sequence[TodoItem]) -> Todo:
    """Mark as in progress each pending item whose dependencies are done."""
    done = {item.position for item in todo if item.status == "done"}
    return tuple(
        _with_status(item, "in_progress")
        if item.status == "pending" and done.issuperset(item.dependencies)
        else item
        for item in todo
    )


def evidence_found(todo: Sequence[TodoItem]) -> Todo:
    """Mark as done the items in progress that others depend on, then start those others."""
    needed = {position for item in todo for position in item.dependencies}
    updated = tuple(
        _with_status(item, "done") if item.status == "in_progress" and item.position in needed else item
        for item in todo
    )
    return started(updated)


def tried_again(todo: Sequence[TodoItem]) -> Todo:
    """Increase the attempt count of each item in progress."""
    return tuple(
        item.model_copy(update={"attempts": item.attempts + 1}) if item.status == "in_progress" else item
        for item in todo
    )


def closed(todo: Sequence[TodoItem], *, succeeded: bool) -> Todo:
    """Close all items at the end of a run. If the run failed, items that were done count as failed as
    well.
    """
    return tuple(_with_status(item, "done" if succeeded else "failed") for item in todo)


def _with_status(item: TodoItem, status: TodoStatus) -> TodoItem:
    return item.model_copy(update={"status": status, "attempts": max(item.attempts, 1)})
