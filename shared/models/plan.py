"""What the model plans for a question: its type, how to search, and the todo list that people see."""

from typing import Literal

from pydantic import Field

from shared.models.base import Model

QueryType = Literal["LISTING", "CONTENT_SEARCH", "DOCUMENT_SUMMARY", "METADATA_SEARCH", "COMPARISON"]
QueryIntent = Literal[
    "fact_lookup", "doc_summary", "compare_docs", "evidence_trace", "exploratory", "procedural"
]
TodoStatus = Literal["pending", "in_progress", "done", "failed"]


class PlannedTodo(Model):
    """One outcome, as the model proposes it."""

    description: str = Field(description="An outcome, not an activity: 'The pressure limit is known'.")
    acceptance_criteria: str = Field(description="How one sees that it is done.")
    dependencies: tuple[int, ...] = Field(description="Positions (from 1) of items that must be done first.")


class QuestionPlan(Model):
    """Structured output of the planning call; every field is required."""

    query_type: QueryType
    intent: QueryIntent
    standalone_question: str = Field(description="The question with pronouns and ellipsis resolved.")
    search_queries: tuple[str, ...] = Field(description="1-3 phrasings to search for.")
    keywords: tuple[str, ...] = Field(description="Names, numbers, terms worth matching literally.")
    document_references: tuple[str, ...] = Field(
        description="Documents that the question names: file names, titles, or how it calls them."
    )
    todo: tuple[PlannedTodo, ...] = Field(description="1-4 items.")


class TodoItem(Model):
    """One item of the todo list of a run. `position` counts from 1."""

    position: int
    description: str
    acceptance_criteria: str
    dependencies: tuple[int, ...] = ()
    status: TodoStatus = "pending"
    attempts: int = 0
