"""Defines the structured output of the planning call.

The first word of an answer waits for this reply, so everything that a plain question doesn't need is in one
nullable object. Strict schemas have no optional fields.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from shared.platform.models import Model
from shared.runs.plan import PlanFilter, PlannedTodo, QueryIntent, QueryType, QuestionPlan

MAX_QUERIES = 6

QuestionKind = Literal[
    "fact",
    "procedure",
    "evidence",
    "overview",
    "summary",
    "comparison",
    "listing",
    "metadata",
    "conversation",
]
TYPES: Mapping[QuestionKind, tuple[QueryType, QueryIntent]] = {
    "fact": ("CONTENT_SEARCH", "fact_lookup"),
    "procedure": ("CONTENT_SEARCH", "procedural"),
    "evidence": ("CONTENT_SEARCH", "evidence_trace"),
    "overview": ("CONTENT_SEARCH", "exploratory"),
    "summary": ("DOCUMENT_SUMMARY", "doc_summary"),
    "comparison": ("COMPARISON", "compare_docs"),
    "listing": ("LISTING", "fact_lookup"),
    "metadata": ("METADATA_SEARCH", "fact_lookup"),
    "conversation": ("CONVERSATION", "fact_lookup"),
}


class PlanDetails(Model):
    """The parts of a plan that a plain question doesn't need."""

    reply: str = Field(description="For conversation: the reply. Otherwise empty.")
    filters: tuple[PlanFilter, ...] = Field(description="Properties that the documents must have.")
    every: str = Field(description="Kind of documents that are all meant: 'annual reports 2023'. Or empty.")
    needs_tables: bool = Field(description="Whether the answer requires calculating with spreadsheet rows.")
    missing_subject: str = Field(description="What the question leaves open: 'which team'. Or empty.")
    todo: tuple[PlannedTodo, ...] = Field(description="2-4 outcomes, or none.")


class PlanReply(Model):
    """A plan as a model writes it."""

    kind: QuestionKind
    language: str = Field(description="ISO 639-1 code of the language to answer in.")
    question: str | None = Field(description="The rewritten question; null if it stands alone.")
    searches: tuple[str, ...] = Field(description=f"At most {MAX_QUERIES} further search phrases.")
    documents: tuple[str, ...] = Field(description="Documents that the question names, as it names them.")
    more: PlanDetails | None = Field(description="null unless one of its fields is needed.")

    def to_plan(self) -> QuestionPlan:
        """Convert the reply to the plan that is stored. `standalone_question` is empty if the question needs
        no rewriting.
        """
        query_type, intent = TYPES[self.kind]
        return QuestionPlan(
            query_type=query_type,
            intent=intent,
            language=self.language,
            standalone_question=(self.question or "").strip(),
            search_queries=tuple(query for query in self.searches if query.strip())[:MAX_QUERIES],
            document_references=self.documents,
            **(dict(self.more) if self.more else _NO_DETAILS),
        )


_NO_DETAILS = dict(
    PlanDetails(reply="", filters=(), every="", needs_tables=False, missing_subject="", todo=())
)
