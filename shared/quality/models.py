"""Facts of use: a record per run with its sub-agents, per rating and per opened source. No content.

Each record has the instant of its question, so that all records of an answer are in the same hour. The key is
a digest of the run id and identifies neither the run nor a person.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from shared.platform.models import HourRecord, Model
from shared.runs.models import ChildStatus, Count, ProfileName, Reason, ReasonCode, Thumb

Share = Annotated[float, Field(ge=0, le=1)]
Outcome = Literal["answered", "abstained", "failed", "cancelled"]


class DecisionFacts(Model):
    """A decision of the delegation policy. `profile` is None if the policy decided not to delegate."""

    decision: Literal["delegate", "no_delegate", "defer"]
    profile: ProfileName | None = None
    reason_codes: tuple[ReasonCode, ...] = ()


class ChildFacts(Model):
    """The outcome of a sub-agent, with its duration, tokens and cost.

    Attributes:
        selected: the profile at the start; `profile` is the profile at the end.
        timed_out: whether its own or its parent's time limit ended it.
        latency_ms: time from its first turn to its end, or to its deadline. None = it never started.
        claims, proved: number of all statements, and of statements with a verified proof.
    """

    selected: ProfileName
    profile: ProfileName
    status: ChildStatus
    timed_out: bool
    latency_ms: Count | None = None
    turns: Count = 0
    tokens: Count = 0
    cost_usd: float = 0.0
    claims: Count = 0
    proved: Count = 0


class AnswerRecord(HourRecord):
    """The outcome of one run, with its decisions to delegate and its sub-agents.

    Attributes:
        at: when the question was asked.
        asked_back: the run asked for a clarification.
        plan_items, plan_items_done: of its todo list.
        figures_available, figures_shown: pictures found, and pictures shown.
        citations, citations_verified: citations shown, and those proved by quotation or by repeating the
            query.
        tool_calls, tool_calls_succeeded: of the main agent and its sub-agents.
        latency_ms: from question to end; None if it waited for the user.
        first_token_ms: as in `WritingFacts`.
        warnings: number of warnings with the answer.
        decisions, children: in the order of their steps.
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
    warnings: Count = 0
    decisions: tuple[DecisionFacts, ...] = ()
    children: tuple[ChildFacts, ...] = ()


class RatingRecord(HourRecord):
    """A rating of an answer without its comment."""

    kind: Literal["rating"] = "rating"
    rating: int | None = None
    thumb: Thumb | None = None
    reasons: tuple[Reason, ...] = ()
    has_comment: bool = False


class OpeningRecord(HourRecord):
    """A record that the source of citation `n` was opened."""

    kind: Literal["opening"] = "opening"
    n: int

    @property
    def row_key(self) -> str:
        """The row key, which ends in the citation's number."""
        return f"{self.kind}-{self.key}-{self.n:04d}"


QualityRecord = AnswerRecord | RatingRecord | OpeningRecord


class Measure(Model):
    """A quality measure: the share of cases in which something happened, and the target for it.

    Attributes:
        value: a fraction from 0 to 1; None if there are no cases.
        of: number of cases, such as answers or tool calls.
        aim: target, a minimum or maximum according to `better`; None = no target.
        met: whether the target was met; None without a value or target.
    """

    value: float | None
    of: Count
    better: Literal["higher", "lower"] = Field(description="Whether higher or lower values are better.")
    aim: float | None = None
    met: bool | None = None


class AnswerCounts(Model):
    """Runs by outcome, and the totals they are compared with."""

    runs: Count = Field(description="Number of questions.")
    answered: Count = Field(description="Runs with an answer.")
    abstained: Count = Field(description="Runs whose question the documents don't answer.")
    failed: Count = Field(description="Failed runs.")
    cancelled: Count = Field(description="Runs cancelled by their owner.")
    asked_back: Count = Field(description="Runs with a clarification.")
    delegated: Count = Field(description="Runs with sub-agents.")
    with_warnings: Count = Field(description="Runs with a warning.")


class Ratings(Model):
    """Ratings by users.

    Attributes:
        rated: number of answers with a rating or thumb.
        average: of the numeric ratings; None without any.
        distribution: counts of the ratings 1 to 5, in this order.
        reasons: count of each reason given.
        comments: number of answers with a comment.
    """

    rated: Count
    average: float | None
    distribution: tuple[Count, Count, Count, Count, Count]
    thumbs_up: Count = Field(description="Thumbs up.")
    thumbs_down: Count = Field(description="Thumbs down.")
    reasons: dict[Reason, Count]
    comments: Count


class Times(Model):
    """Percentiles of the answer time in milliseconds, by the nearest-rank method. Runs that waited for the
    user are excluded.
    """

    latency_p50_ms: Count | None = Field(description="Median, in milliseconds.")
    latency_p95_ms: Count | None = Field(description="95th percentile, in milliseconds.")
    first_token_p50_ms: Count | None = Field(description="Median time to the first text, in milliseconds.")
    first_token_p95_ms: Count | None = Field(
        description="95th percentile of the time to the first text, in milliseconds."
    )


class QualityMeasures(Model):
    """The measures, as defined in docs/operate.md."""

    click_through_rate: Measure = Field(description="Answers with an opened source.")
    answers_with_figures: Measure = Field(
        description="Answers with a figure, among those whose retrieved pages have one."
    )
    plan_completion: Measure = Field(description="Plans completed without a clarification.")
    clarification_rate: Measure = Field(description="Questions that needed a clarification.")
    tool_success: Measure = Field(description="Successful tool calls.")
    citation_accuracy: Measure = Field(description="Citations that are verified or computed.")
    abstention_rate: Measure = Field(description="Questions that the documents don't answer.")
    failure_rate: Measure = Field(description="Failed questions.")


class QualityMetrics(Model):
    """Body of GET /api/metrics/quality.

    Attributes:
        since, until: the covered period; `complete` is False if `since` is later than requested.
        project_id: the project; None = all.
    """

    since: datetime
    until: datetime
    complete: bool = Field(
        description="Whether the whole period was counted; false if it had too many records."
    )
    project_id: str | None
    answers: AnswerCounts = Field(description="Outcomes of questions.")
    ratings: Ratings = Field(description="Ratings by users.")
    times: Times = Field(description="Response times.")
    measures: QualityMeasures = Field(description="Measures with their targets.")
