"""GET /api/metrics/...: recent quality of answers and sub-agents. For administrators."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from functions.http.api_route import ApiRoute
from functions.http.contracts import contract, json_reply
from functions.http.models import PLAIN_DIGITS
from functions.http.requests import Administrator, Ready
from functions.http.responses import json_response
from shared.answering.metrics import SubagentMetrics, subagent_metrics
from shared.platform.models import Model
from shared.quality.measures import quality_metrics
from shared.quality.models import QualityMetrics

Hours = Annotated[int, Field(ge=1, le=168), PLAIN_DIGITS]  # a week, because each hour is one query


class MetricsQuery(Model):
    """Query parameters of the sub-agents' metrics."""

    hours: Hours = Field(default=24, description="Length of the period until now, in hours.")


class QualityQuery(Model):
    """Query parameters of the quality of answers in production."""

    hours: Annotated[int, Field(ge=1, le=720), PLAIN_DIGITS] = Field(  # 30 days, the retention of runs
        default=24, description="Length of the period until now, in hours."
    )
    project_id: str = Field(default="", max_length=128, description="Only this project.")


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
    """Return counts, success, latency and cost per profile, and the state of the circuit breaker."""
    return json_response(
        await subagent_metrics(
            services.settings,
            services.subagent_control,
            services.subagent_metrics,
            datetime.now(UTC),
            query.hours,
        )
    )


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
    """Return the measured quality of answers in use, each measure with its target."""
    return json_response(
        await quality_metrics(services.quality, datetime.now(UTC), query.hours, query.project_id or None)
    )
