"""Quality in use: a record per answer, per rating and per source opened, and their summary. No content.

Each record holds the instant of its question, so that all that is known of an answer lies in the same hour.
Its key is a digest of the run: it names neither the run nor a person.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from shared.platform.models import HourRecord, Model
from shared.runs.models import Count, Reason, Thumb

Share = Annotated[float, Field(ge=0, le=1)]
Outcome = Literal["answered", "abstained", "failed", "cancelled"]


class AnswerRecord(HourRecord):
    """The end of one run.

    Attributes:
        at: when the question came.
        asked_back: the run put a question back.
        plan_items, plan_items_done: of its todo list.
        figures_available, figures_shown: pictures that it could have shown, and did.
        citations, citations_verified: that it shows, and those proved: word by word, or by the same query.
        tool_calls, tool_calls_succeeded: of the main agent and of its sub-agents.
        latency_ms: from the question to the end; None if it waited for a person.
        first_token_ms: as in `WritingFacts`.
        sub_agents, warnings: how many.
    """

    kind: Literal["answer"] = "answer"
    project_id: str | None = None
    outcome: Outcome
    asked_back: bool = False
    plan_items: Count = 0
    plan_items_done: Count = 0
    figures_available: Count = 0
    figures_shown: Count = 0
    citations: Count = 0
    citations_verified: Count = 0
    tool_calls: Count = 0
    tool_calls_succeeded: Count = 0
    latency_ms: Count | None = None
    first_token_ms: Count | None = None
    sub_agents: Count = 0
    warnings: Count = 0


class RatingRecord(HourRecord):
    """What a person says of an answer, without their words."""

    kind: Literal["rating"] = "rating"
    rating: int | None = None
    thumb: Thumb | None = None
    reasons: tuple[Reason, ...] = ()
    has_comment: bool = False


class OpeningRecord(HourRecord):
    """The source of citation `n` was opened."""

    kind: Literal["opening"] = "opening"
    n: int

    @property
    def row_key(self) -> str:
        """It ends in the citation's number."""
        return f"{self.kind}-{self.key}-{self.n:04d}"


QualityRecord = AnswerRecord | RatingRecord | OpeningRecord


class Measure(Model):
    """One measure.

    Attributes:
        value: None without data.
        of: how many answers, calls, ... it is the share of.
        aim: what it should be: at least, or at most, as `better` says; None = none is set.
        met: None without value or aim.
    """

    value: float | None
    of: Count
    better: Literal["higher", "lower"] = Field(description="Which way is better.")
    aim: float | None = None
    met: bool | None = None


class AnswerCounts(Model):
    """Runs by how they ended, and the things that they are counted by."""

    runs: Count = Field(description="How many questions were asked.")
    answered: Count = Field(description="Those with an answer.")
    abstained: Count = Field(description="Those whose answer the documents did not hold.")
    failed: Count = Field(description="Those that failed.")
    cancelled: Count = Field(description="Those that their owner ended.")
    asked_back: Count = Field(description="Those with a clarifying question.")
    delegated: Count = Field(description="Those on which sub-agents worked.")
    with_warnings: Count = Field(description="Those with a warning.")


class Ratings(Model):
    """What people said.

    Attributes:
        rated: answers that were rated, by number or thumb.
        average: of the numbers; None = there are none.
        distribution: how often each number from 1 to 5 was given, in this order.
        reasons: how often each was given; those that were not are left out.
        comments: how many wrote one.
    """

    rated: Count
    average: float | None
    distribution: tuple[Count, Count, Count, Count, Count]
    thumbs_up: Count = Field(description="Thumbs up.")
    thumbs_down: Count = Field(description="Thumbs down.")
    reasons: dict[Reason, Count]
    comments: Count


class Times(Model):
    """Times of answers in milliseconds, by the nearest rank; those that waited for a person are left out."""

    latency_p50_ms: Count | None = Field(description="Half of all took at most this long, in milliseconds.")
    latency_p95_ms: Count | None = Field(description="95 % of all took at most this long, in milliseconds.")
    first_token_p50_ms: Count | None = Field(
        description="Half of all answers began within this time, in milliseconds."
    )
    first_token_p95_ms: Count | None = Field(
        description="95 % of all answers began within this time, in milliseconds."
    )


class QualityMeasures(Model):
    """The measures. What each counts stands in docs/operate.md."""

    click_through_rate: Measure = Field(description="Answers of which a source was opened.")
    answers_with_figures: Measure = Field(
        description="Answers that show a figure where the retrieved pages have one."
    )
    plan_completion: Measure = Field(description="Plans that were finished without help.")
    clarification_rate: Measure = Field(description="Questions that were asked back.")
    tool_success: Measure = Field(description="Tool calls that worked.")
    citation_accuracy: Measure = Field(description="Citations that are verified or computed.")
    abstention_rate: Measure = Field(description="Answers that say that the documents do not hold it.")
    failure_rate: Measure = Field(description="Questions that failed.")


class QualityMetrics(Model):
    """Body of GET /api/metrics/quality.

    Attributes:
        since, until: the questions of this time are covered; `complete` is False when `since` had to be later
            than asked.
        project_id: of which project; None = of all.
    """

    since: datetime
    until: datetime
    complete: bool = Field(
        description="Whether everything in this time was counted; false if it was too much."
    )
    project_id: str | None
    answers: AnswerCounts = Field(description="How questions ended.")
    ratings: Ratings = Field(description="What people said of answers.")
    times: Times = Field(description="How long answers took.")
    measures: QualityMeasures = Field(description="Each measure with its aim.")
