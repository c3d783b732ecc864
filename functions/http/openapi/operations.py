"""The calls of operators, health, and the description itself. A table: one row per route."""

from functions.http.models import CachedHeaders, HealthView, MetricsQuery, QualityQuery, ReadinessView
from functions.http.openapi.operation import JSON, Operation, Reply, json_reply
from shared.access.models import Me
from shared.erasure.models import ErasureQuery, ErasureView
from shared.ingestion.models import AuditReport, ReconcileReport
from shared.platform.errors import AccessDeniedError, CallerError, ConflictError, NotFoundError
from shared.platform.queues import PoisonList
from shared.quality.models import QualityMetrics
from shared.subagents.metrics import SubagentMetrics

_OPERATION, _HEALTH, _DESCRIPTION = "Operators", "Health", "Description"
_KNOWN = Reply(304, "The caller has it already.", (), ("ETag",))

OPERATION = (
    Operation(
        "GET",
        "maintenance/audit",
        "get_audit",
        _OPERATION,
        "Whether files, states and indexes agree",
        (json_reply(200, "What was found.", AuditReport),),
        (AccessDeniedError,),
    ),
    Operation(
        "GET",
        "maintenance/poison",
        "get_poison",
        _OPERATION,
        "Events that were tried in vain",
        (json_reply(200, "The oldest of each queue.", PoisonList),),
        (AccessDeniedError,),
    ),
    Operation(
        "POST",
        "maintenance/reconcile",
        "reconcile_now",
        _OPERATION,
        "Make good what events missed, now",
        (json_reply(200, "What was done.", ReconcileReport),),
        (AccessDeniedError,),
    ),
    Operation(
        "GET",
        "metrics/subagents",
        "get_subagent_metrics",
        _OPERATION,
        "How sub-agents did of late",
        (json_reply(200, "By profile.", SubagentMetrics),),
        (CallerError, AccessDeniedError),
        query=MetricsQuery,
    ),
    Operation(
        "GET",
        "metrics/quality",
        "get_quality_metrics",
        _OPERATION,
        "How good answers were in use",
        (json_reply(200, "Measures, each with its aim.", QualityMetrics),),
        (CallerError, AccessDeniedError),
        query=QualityQuery,
    ),
    Operation(
        "DELETE",
        "users/{user_id}",
        "erase_user",
        _OPERATION,
        "Erase everything that is kept of a person",
        (json_reply(202, "It has begun, or is at work.", ErasureView, "Location"),),
        (CallerError, AccessDeniedError, ConflictError),
        query=ErasureQuery,
    ),
    Operation(
        "GET",
        "users/{user_id}/erasure",
        "get_erasure",
        _OPERATION,
        "How far the erasure of a person is",
        (json_reply(200, "What was erased, and what stays.", ErasureView),),
        (CallerError, AccessDeniedError, NotFoundError),
    ),
)

CALLER = (
    Operation(
        "GET",
        "me",
        "get_me",
        "Caller",
        "Who the caller is",
        (json_reply(200, "As the app sees them.", Me),),
    ),
)

HEALTH = (
    Operation(
        "GET",
        "health",
        "get_health",
        _HEALTH,
        "Whether the process answers",
        (json_reply(200, "It does.", HealthView),),
        is_open=True,
    ),
    Operation(
        "GET",
        "health/ready",
        "get_readiness",
        _HEALTH,
        "Whether search and storage answer",
        (json_reply(200, "All do.", ReadinessView), json_reply(503, "Some do not.", ReadinessView)),
        is_open=True,
    ),
)

DESCRIPTION = (
    Operation(
        "GET",
        "openapi.json",
        "get_description",
        _DESCRIPTION,
        "This description",
        (Reply(200, "OpenAPI 3.1.", ((JSON, None),), ("ETag",)), _KNOWN),
        headers=CachedHeaders,
        is_open=True,
    ),
    Operation(
        "GET",
        "docs",
        "get_docs_page",
        _DESCRIPTION,
        "The same as a page to try it on",
        (Reply(200, "The page.", (("text/html", None),)),),
        is_open=True,
    ),
    Operation(
        "GET",
        "docs/{asset}",
        "get_docs_asset",
        _DESCRIPTION,
        "A file of that page",
        (
            Reply(
                200,
                "The file.",
                (("text/css", None), ("text/javascript", None), ("image/png", None)),
                ("ETag",),
            ),
            _KNOWN,
        ),
        (NotFoundError,),
        headers=CachedHeaders,
        is_open=True,
    ),
)
