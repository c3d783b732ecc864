"""What a model says of passages and questions (structured outputs; every field is required)."""

from pydantic import Field

from shared.models.base import Model


class PassageScore(Model):
    """How well one passage answers."""

    number: int = Field(description="The passage's number, as given.")
    score: int = Field(description="0 (nothing to do with it) to 10 (answers it in full).")


class PassageScores(Model):
    """Structured output of reranking."""

    scores: tuple[PassageScore, ...] = Field(description="One for each passage.")


class PassageGrade(Model):
    """Whether one passage helps at all."""

    number: int = Field(description="The passage's number, as given.")
    relevant: bool = Field(description="Whether it holds anything that helps to answer.")


class PassageGrades(Model):
    """Structured output of grading."""

    grades: tuple[PassageGrade, ...] = Field(description="One for each passage.")


class QueryRewrite(Model):
    """Structured output of rewriting a question."""

    standalone_question: str = Field(description="The question with pronouns and ellipsis resolved.")
    search_queries: tuple[str, ...] = Field(description="2-4 different phrasings to search for.")
