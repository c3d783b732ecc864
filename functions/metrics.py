"""GET /api/metrics/...: how answers, and sub-agents, did of late. For administrators."""

from datetime import UTC, datetime

import azure.functions as func

from functions.http.requests import administrator_of, ready_services
from functions.http.responses import Request, Response, json_response, read_query, route

blueprint = func.Blueprint()


@route(blueprint, "GET", "metrics/subagents", has_query=True)
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


@route(blueprint, "GET", "metrics/quality", has_query=True)
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
