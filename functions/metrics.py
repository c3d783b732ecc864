"""Routes under GET /api/metrics, which show administrators the recent quality of answers and the performance
of sub-agents.
"""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from functions.http.api_route import ApiRoute
from functions.http.contracts import contract, json_reply
from functions.http.models import PLAIN_DIGITS
from functions.http.requests import Administrator, Ready
from functions.http.responses import json_response
from shared.answering.control import ControlStore, read_control
from shared.answering.control_state import ControlView
from shared.platform.errors import GroundworkError
from shared.platform.models import Model
from shared.platform.settings import Settings
from shared.quality.measures import quality_metrics, read_period
from shared.quality.models import AnswerRecord, QualityMetrics
from shared.quality.subagent_measures import ProfileMetrics, by_profile
from shared.runs.models import Count

# Limited to a week, because each hour costs one query.
Hours = Annotated[int, Field(ge=1, le=168), PLAIN_DIGITS]


class MetricsQuery(Model):
    """Query parameters of GET /api/metrics/subagents."""

    hours: Hours = Field(default=24, description="Length of the period, in hours. It ends now.")


class QualityQuery(Model):
    """Query parameters of GET /api/metrics/quality."""

    # The limit of 30 days equals the default retention of runs.
    hours: Annotated[int, Field(ge=1, le=720), PLAIN_DIGITS] = Field(
        default=24, description="Length of the period, in hours. It ends now."
    )
    project_id: str = Field(
        default="", max_length=128, description="Return only measures of answers in this project."
    )


class SubagentMetrics(Model):
    """Reply of GET /api/metrics/subagents.

    Attributes:
        since, until: the covered period; `complete` is False if it is shorter than requested.
        decisions, delegated, deferred: decisions of the policy for all profiles.
        profiles: metrics of profiles that were selected or had a sub-agent in this period.
        control: None if the control state could not be read.
    """

    since: datetime
    until: datetime
    complete: bool = Field(
        description="Whether the whole requested period is covered. False if it contains too many records."
    )
    decisions: Count
    delegated: Count
    deferred: Count
    profiles: tuple[ProfileMetrics, ...]
    control: ControlView | None


router = APIRouter(tags=["Operators"], route_class=ApiRoute)


@router.get(
    "/api/metrics/subagents",
    **contract(
        "Recent performance of sub-agents",
        json_reply(200, "Metrics by profile.", SubagentMetrics),
    ),
)
async def get_subagent_metrics(
    query: Annotated[MetricsQuery, Query()], administrator: Administrator, services: Ready
) -> Response:
    """Return success, latency and cost of sub-agents by profile, how often work was delegated, and the state
    of the circuit breaker.
    """
    now = datetime.now(UTC)
    since, records = await read_period(services.quality, now, query.hours)
    runs = [record for record in records if isinstance(record, AnswerRecord)]
    decided = Counter(decision.decision for run in runs for decision in run.decisions)
    return json_response(
        SubagentMetrics(
            since=since,
            until=now,
            complete=since == now - timedelta(hours=query.hours),
            decisions=decided.total(),
            delegated=decided["delegate"],
            deferred=decided["defer"],
            profiles=by_profile(runs),
            control=await _control(services.settings, services.subagent_control),
        )
    )


async def _control(settings: Settings, subagent_control: ControlStore) -> ControlView | None:
    try:
        return await read_control(settings, subagent_control)
    except GroundworkError:
        return None


@router.get(
    "/api/metrics/quality",
    **contract(
        "Quality of answers in production",
        json_reply(200, "Measures, each with its target.", QualityMetrics),
    ),
)
async def get_quality_metrics(
    query: Annotated[QualityQuery, Query()], administrator: Administrator, services: Ready
) -> Response:
    """Return quality measures of recent answers, each with its target value."""
    return json_response(
        await quality_metrics(services.quality, datetime.now(UTC), query.hours, query.project_id or None)
    )
