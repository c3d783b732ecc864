"""What people say of an answer, and that they opened a source of it."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from shared.models.base import Model

MAX_COMMENT_CHARS = 2000

Thumb = Literal["up", "down"]
Reason = Literal[
    "helpful",
    "complete",
    "well_sourced",
    "wrong",
    "incomplete",
    "wrong_source",
    "missing_figure",
    "outdated",
    "unclear",
    "too_slow",
]
Rating = Annotated[int, Field(ge=1, le=5, strict=True)]
Comment = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_COMMENT_CHARS)]


class FeedbackBody(Model):
    """Body of PUT /api/runs/{run_id}/feedback: a rating, a thumb, or both. The last one counts."""

    rating: Rating | None = Field(default=None, description="1 (useless) to 5 (all that was needed).")
    thumb: Thumb | None = Field(default=None, description="`up` or `down`.")
    reasons: tuple[Reason, ...] = Field(default=(), max_length=10, description="Why, in fixed words.")
    comment: Comment | None = Field(default=None, description="In own words. Kept, and erased, with the run.")

    @model_validator(mode="after")
    def _check_one_is_given(self) -> Self:
        if self.rating is None and self.thumb is None:
            raise ValueError('give "rating" or "thumb", or both')
        return self


class Feedback(FeedbackBody):
    """The same as it is kept, with the run: when it was given, with zone."""

    given_at: datetime


class SourceOpened(Model):
    """Body of POST /api/runs/{run_id}/openings: the source of a citation was opened."""

    n: int = Field(ge=1, le=9999, strict=True, description="The citation's number.")
