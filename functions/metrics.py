"""GET /api/metrics/...: how answers, and sub-agents, did of late. For administrators."""

from datetime import UTC, datetime

from fastapi import APIRouter, Request, Response

from functions.http import models as http
from functions.http.application import ObservedRoute
from functions.http.contracts import contract, json_reply
from functions.http.requests import administrator_of, ready_services
from functions.http.responses import json_response, read_query
from shared.quality.models import QualityMetrics
from shared.subagents.metrics import SubagentMetrics

router = APIRouter(tags=["Operators"], route_class=ObservedRoute)


@router.get(
    "/api/metrics/subagents",
    **contract(
        "How sub-agents did recently",
        json_reply(200, "By profile.", SubagentMetrics),
        query=http.MetricsQuery,
    ),
)
async def get_subagent_metrics(req: Request) -> Response:
    """Per profile: how often, how well, how fast, at what cost; and the circuit breaker as it is now."""
    from functions.http.models import MetricsQuery
    from shared.subagents.metrics import subagent_metrics

    await administrator_of(req)
    asked = read_query(req, MetricsQuery)
    services = await ready_services()
    return json_response(
        await subagent_metrics(
            services.settings,
            services.subagent_control,
            services.subagent_metrics,
            datetime.now(UTC),
            asked.hours,
        )
    )


@router.get(
    "/api/metrics/quality",
    **contract(
        "How good answers were in use",
        json_reply(200, "Measures, each with its target.", QualityMetrics),
        query=http.QualityQuery,
    ),
)
async def get_quality_metrics(req: Request) -> Response:
    """How good answers were in use: what people said, opened, and got; each measure with its aim."""
    from functions.http.models import QualityQuery
    from shared.quality.measures import quality_metrics

    await administrator_of(req)
    asked = read_query(req, QualityQuery)
    services = await ready_services()
    return json_response(
        await quality_metrics(services.quality, datetime.now(UTC), asked.hours, asked.project_id or None)
    )
