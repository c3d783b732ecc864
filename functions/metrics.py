"""GET /api/metrics/...: how answers, and sub-agents, did of late. For administrators."""

from datetime import UTC, datetime

import azure.functions as func

from functions.http.requests import administrator_of, ready_services
from functions.http.responses import Request, Response, json_response, read_query, route
from shared.platform.errors import CallerError

blueprint = func.Blueprint()

_USUAL_HOURS = 24
MAX_HOURS = 168  # a week: an hour is one query


@route(blueprint, "GET", "metrics/subagents")
async def get_subagent_metrics(req: Request) -> Response:
    """Per profile: how often, how well, how fast, at what cost; and the circuit breaker as it is now."""
    from shared.subagents.metrics import subagent_metrics

    await administrator_of(req)
    hours = _hours(req.query_params.get("hours"))
    services = await ready_services()
    return json_response(
        await subagent_metrics(
            services.settings, services.subagent_control, services.subagent_metrics, datetime.now(UTC), hours
        )
    )


@route(blueprint, "GET", "metrics/quality")
async def get_quality_metrics(req: Request) -> Response:
    """How good answers were in use: what people said, opened, and got; each measure with its aim."""
    # Imported when used: a worker that starts does not wait for it.
    from functions.http.models import QualityQuery
    from shared.quality.measures import quality_metrics

    await administrator_of(req)
    asked = read_query(req, QualityQuery)
    services = await ready_services()
    told = await quality_metrics(services.quality, datetime.now(UTC), asked.hours, asked.project_id or None)
    return json_response(told)


def _hours(text: str | None) -> int:
    if text is None:
        return _USUAL_HOURS
    if len(text) > 3 or not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_HOURS:
        raise CallerError(f"hours takes a number from 1 to {MAX_HOURS}.", "Leave it out for the last day.")
    return int(text)
