"""A question back to the person who asked: which of several documents is meant, and what was answered."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from shared.models.base import Model
from shared.models.identity import UserContext

MAX_ANSWER_CHARS = 500


class ClarificationOption(Model):
    """One of the documents that may be meant.

    Attributes:
        number: counted from 1; all that a person needs to choose it.
        date: of its upload, YYYY-MM-DD.
    """

    number: int
    doc_id: str
    filename: str
    title: str = ""
    date: str


class Clarification(Model):
    """What was asked. It waits for an answer until `expires_at`."""

    question: str
    options: tuple[ClarificationOption, ...]
    expires_at: datetime


class ClarificationAnswer(Model):
    """Body of `POST /api/runs/{run_id}/answer`: a number, or words."""

    choice: int | None = Field(default=None, description="Number of an option.")
    text: (
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_ANSWER_CHARS)]
        | None
    ) = Field(default=None, description='In words: "the second", "the 2024 one", "both".')

    @model_validator(mode="after")
    def _check_one_is_given(self) -> Self:
        if (self.choice is None) == (self.text is None):
            raise ValueError('give either "choice" or "text"')
        return self


class Choice(Model):
    """What an answer comes to.

    Attributes:
        said: the answer as it was given; empty when none came in time.
        numbers: options that are meant; empty = all of them.
        extra_words: wording that chose none of them and is added to the question.
        asker: who answered, with the rights of that moment; None = nobody did.
    """

    said: str = ""
    numbers: tuple[int, ...] = ()
    extra_words: str = ""
    asker: UserContext | None = None
