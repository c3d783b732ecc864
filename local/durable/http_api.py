"""The HTTP API of Durable Functions, as called by DurableOrchestrationClient 1.7.0.

Source of paths, codes and bodies: HttpApiHandler.cs.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from urllib.parse import quote

from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from local.durable.history import COMPLETIONS, SCHEDULING, EventType, HistoryEvent, parse_utc, utc_text
from local.durable.instance_table import InstanceFilter
from local.durable.instances import Instance, InstanceExists
from local.durable.task_hub import InvalidRequest, TaskHub

RPC_PREFIX = "/durabletask"
WEBHOOK_PREFIX = "/runtime/webhooks/durabletask"


# Placeholder for the instance id. The SDK replaces the text of managementUrls["id"] in each URL.
_ID_PLACEHOLDER = "INSTANCEID"


def client_binding_json(base_url: str, task_hub: str, rpc_path: str = RPC_PREFIX) -> str:
    """Return the durable client binding as JSON. The SDK calls the RPC URL; the management URLs are for
    people and other programs.
    """
    root = base_url.rstrip("/")
    return json.dumps(
        {
            "taskHubName": task_hub,
            "creationUrls": _creation_urls(root + WEBHOOK_PREFIX),
            "managementUrls": management_urls(root + WEBHOOK_PREFIX, _ID_PLACEHOLDER, task_hub),
            "rpcBaseUrl": f"{root}{rpc_path}/",
        }
    )


def management_urls(webhook_url: str, instance_id: str, task_hub: str) -> dict[str, str]:
    """Return the management URLs of one instance, which the reply to a start request contains."""
    instance = f"{webhook_url}/instances/{quote(instance_id, safe='')}"
    hub = f"taskHub={quote(task_hub, safe='')}&connection=Storage"
    return {
        "id": instance_id,
        "statusQueryGetUri": f"{instance}?{hub}",
        "sendEventPostUri": f"{instance}/raiseEvent/{{eventName}}?{hub}",
        "terminatePostUri": f"{instance}/terminate?reason={{text}}&{hub}",
        "rewindPostUri": f"{instance}/rewind?reason={{text}}&{hub}",
        "purgeHistoryDeleteUri": f"{instance}?{hub}",
        "restartPostUri": f"{instance}/restart?{hub}",
    }


def _creation_urls(webhook_url: str) -> dict[str, str]:
    start = f"{webhook_url}/orchestrators/{{functionName}}[/{{instanceId}}]"
    wait = "timeout={timeoutInSeconds}&pollingInterval={intervalInSeconds}"
    return {
        "createNewInstancePostUri": start,
        "createAndWaitOnNewInstancePostUri": f"{start}?{wait}",
    }


StatusDocument = dict[str, JsonValue]


_EVENT_NAMES = {kind: kind.name.title().replace("_", "") for kind in EventType}


_WITH_OUTPUT = frozenset(
    {
        EventType.TASK_COMPLETED,
        EventType.SUB_ORCHESTRATION_INSTANCE_COMPLETED,
        EventType.EXECUTION_COMPLETED,
    }
)


_FRAME = frozenset({EventType.ORCHESTRATOR_STARTED, EventType.ORCHESTRATOR_COMPLETED})
_HIDDEN = {"event_type", "event_id", "is_played", "version", "task_scheduled_id", "timer_id", "name"}


def status_document(
    instance: Instance, *, show_input: bool, history: list[JsonValue] | None = None
) -> StatusDocument:
    """Return the status of an instance as JSON. As in the real host, times are cut to seconds, and inputs
    from the SDK are JSON strings.
    """
    return {
        "name": instance.name,
        "instanceId": instance.instance_id,
        "runtimeStatus": instance.runtime_status.value,
        "input": _parse(instance.input) if show_input else None,
        "customStatus": _parse(instance.custom_status),
        "output": _parse(instance.output),
        "createdTime": _whole_seconds(instance.created_at),
        "lastUpdatedTime": _whole_seconds(instance.updated_at),
        "historyEvents": history,
    }


def history_document(
    events: Sequence[HistoryEvent], *, show_input: bool, show_output: bool
) -> list[JsonValue]:
    """Return the history as JSON for people. The event that ends an activity or sub-orchestration is merged
    into the event that scheduled it.
    """
    scheduled = {event.event_id: event for event in events if event.event_type in SCHEDULING}
    ended = {event.ended_id for event in events if event.event_type in COMPLETIONS}
    documents: list[JsonValue] = []
    for event in events:
        folded = event.event_type in SCHEDULING and event.event_type is not EventType.TIMER_CREATED
        if event.event_type in _FRAME or (folded and event.event_id in ended):
            continue
        before = scheduled.get(event.ended_id) if event.event_type in COMPLETIONS else None
        documents.append(_event(event, before, show_input=show_input, show_output=show_output))
    return documents


def _event(
    event: HistoryEvent, scheduled: HistoryEvent | None, *, show_input: bool, show_output: bool
) -> StatusDocument:
    document: StatusDocument = {"EventType": _EVENT_NAMES[event.event_type]}
    document |= event.model_dump(by_alias=True, exclude_none=True, exclude=_HIDDEN)
    if event.name is not None:
        document["FunctionName" if event.event_type is EventType.EXECUTION_STARTED else "Name"] = event.name
    if scheduled is not None and event.event_type is not EventType.TIMER_FIRED:
        document |= {"ScheduledTime": scheduled.timestamp, "FunctionName": scheduled.name}
        document["Input"] = scheduled.input
    if not show_input:
        document.pop("Input", None)
    if event.event_type in _WITH_OUTPUT:
        document.pop("Result", None)
        if show_output:
            document["Result"] = _parse(event.result)
    return document


def _parse(text: str | None) -> JsonValue:
    """Return the parsed JSON, or the unchanged text if it isn't valid JSON, such as a failure reason."""
    if text is None:
        return None
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text
    return value


def _whole_seconds(timestamp: str) -> str:
    return f"{timestamp[:19]}Z"


_CONTINUATION_HEADER = "x-ms-continuation-token"
_DEFAULT_PAGE_SIZE = 100  # same default as in OrchestrationStatusQueryCondition.cs of the real host
_POLL_AGAIN_S = "5"


class _Json(JSONResponse):
    """A JSON response that permits NaN, because an orchestrator may return it."""

    def render(self, content: JsonValue | StatusDocument) -> bytes:
        return json.dumps(content).encode()


Endpoint = Callable[[Request, TaskHub], Awaitable[Response]]


class HttpApi:
    """The routes of the client API. They respond with 503 while the executor is stopped.

    Args:
        hub: returns the running task hub or None; called for each request, because routes are mounted before
            the executor starts.
    """

    def __init__(self, hub: Callable[[], TaskHub | None], task_hub_name: str) -> None:
        self._hub = hub
        self._task_hub_name = task_hub_name

    def routes(self) -> list[BaseRoute]:
        one, all_ = "/instances/{instance_id}", ("/instances", "/instances/")
        return [
            self._route("/orchestrators/{name}", self._start, "POST"),
            self._route("/orchestrators/{name}/{instance_id}", self._start, "POST"),
            *(self._route(path, _list, "GET") for path in all_),
            *(self._route(path, _purge_matching, "DELETE") for path in all_),
            self._route(one, _get, "GET"),
            self._route(one, _purge, "DELETE"),
            self._route(f"{one}/raiseEvent/{{event_name}}", _raise_event, "POST"),
            self._route(f"{one}/restart", self._restart, "POST"),
            self._route(f"{one}/terminate", _terminate, "POST"),
            *(self._route(f"{one}/{name}", _refuse, "POST") for name in ("rewind", "suspend", "resume")),
        ]

    def _route(self, path: str, endpoint: Endpoint, method: str) -> Route:
        async def answer(request: Request) -> Response:
            hub = self._hub()
            if hub is None:
                return _error(503, "The durable executor is not running.")
            try:
                return await endpoint(request, hub)
            except InvalidRequest as error:
                return _error(400, str(error))
            except InstanceExists as error:
                return _error(409, str(error))

        return Route(path, answer, methods=[method])

    async def _start(self, request: Request, hub: TaskHub) -> Response:
        body = (await request.body()).decode()
        if body:
            _require_json(body)
        instance_id = hub.start_new(
            request.path_params["name"],
            request.path_params.get("instance_id"),
            body or None,
            request.query_params.get("version", ""),
        )
        return self._accepted_response(request, instance_id)

    async def _restart(self, request: Request, hub: TaskHub) -> Response:
        instance = hub.find(request.path_params["instance_id"])
        if instance is None:
            return Response(status_code=404)
        same_id = not _flag(request, "restartWithNewInstanceId", default=True)
        new_id = instance.instance_id if same_id else None
        return self._accepted_response(
            request, hub.start_new(instance.name, new_id, instance.input, instance.version)
        )

    def _accepted_response(self, request: Request, instance_id: str) -> Response:
        webhook_url = f"{request.url.scheme}://{request.url.netloc}{WEBHOOK_PREFIX}"
        urls = management_urls(webhook_url, instance_id, self._task_hub_name)
        headers = {"Location": urls["statusQueryGetUri"], "Retry-After": "10"}
        return JSONResponse(urls, status_code=202, headers=headers)


async def _get(request: Request, hub: TaskHub) -> Response:
    instance = hub.find(request.path_params["instance_id"])
    if instance is None:
        return Response(status_code=404)
    show_input = _flag(request, "showInput", default=True)
    history = None
    if _flag(request, "showHistory", default=False):
        history = history_document(
            hub.history(instance.instance_id),
            show_input=show_input,
            show_output=_flag(request, "showHistoryOutput", default=False),
        )
    document = status_document(instance, show_input=show_input, history=history)
    if instance.ended:
        return _Json(document)
    headers = {"Location": str(request.url), "Retry-After": _POLL_AGAIN_S}
    return _Json(document, status_code=202, headers=headers)


async def _list(request: Request, hub: TaskHub) -> Response:
    token = request.headers.get(_CONTINUATION_HEADER) or None
    try:
        page = hub.list_page(_filter(request), _page_size(request), token)
    except ValueError as error:
        raise InvalidRequest(str(error)) from error
    show_input = _flag(request, "showInput", default=True)
    documents = [status_document(instance, show_input=show_input) for instance in page.instances]
    headers = {_CONTINUATION_HEADER: page.continuation_token or ""}
    return _Json(documents, headers=headers)


async def _raise_event(request: Request, hub: TaskHub) -> Response:
    instance = hub.find(request.path_params["instance_id"])
    if instance is None or instance.ended:
        return _absent(instance)
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        return _error(400, "Only application/json request content is supported")
    body = (await request.body()).decode()
    _require_json(body)
    hub.raise_event(instance.instance_id, request.path_params["event_name"], body)
    return Response(status_code=202)


async def _terminate(request: Request, hub: TaskHub) -> Response:
    instance = hub.find(request.path_params["instance_id"])
    if instance is None or instance.ended:
        return _absent(instance)
    hub.terminate(instance.instance_id, request.query_params.get("reason", ""))
    return Response(status_code=202)


async def _refuse(_request: Request, _hub: TaskHub) -> Response:
    return _error(501, "This is not supported by the local durable executor.")


async def _purge(request: Request, hub: TaskHub) -> Response:
    if not hub.purge(request.path_params["instance_id"]):
        return Response(status_code=404)
    return JSONResponse({"instancesDeleted": 1})


async def _purge_matching(request: Request, hub: TaskHub) -> Response:
    if "createdTimeFrom" not in request.query_params:
        raise InvalidRequest("Please provide value for 'createdTimeFrom' parameter.")
    deleted = hub.purge_matching(_filter(request))
    return JSONResponse({"instancesDeleted": deleted}) if deleted else Response(status_code=404)


def _absent(instance: Instance | None) -> Response:
    return Response(status_code=404 if instance is None else 410)


def _filter(request: Request) -> InstanceFilter:
    statuses = [
        name for value in request.query_params.getlist("runtimeStatus") for name in value.split(",") if name
    ]
    return InstanceFilter(
        created_from=_time(request, "createdTimeFrom"),
        created_to=_time(request, "createdTimeTo"),
        statuses=statuses or None,
        id_prefix=request.query_params.get("instanceIdPrefix"),
    )


def _time(request: Request, name: str) -> str | None:
    value = request.query_params.get(name)
    if not value:
        return None
    try:
        return utc_text(parse_utc(value))
    except ValueError as error:
        raise InvalidRequest(f"'{name}' must be an ISO 8601 time, not: {value}") from error


def _page_size(request: Request) -> int:
    value = request.query_params.get("top", "")
    return int(value) if value.isdecimal() and int(value) > 0 else _DEFAULT_PAGE_SIZE


def _flag(request: Request, name: str, *, default: bool) -> bool:
    value = request.query_params.get(name, "").lower()
    return value == "true" if value in ("true", "false") else default


def _require_json(body: str) -> None:
    try:
        json.loads(body)
    except ValueError as error:
        raise InvalidRequest(f"Invalid JSON content: {error}") from error


def _error(status: int, message: str) -> Response:
    body: dict[str, JsonValue] = {
        "Message": "Something went wrong while processing your request",
        "ExceptionMessage": message,
        "ExceptionType": "System.ArgumentException" if status == 400 else "System.InvalidOperationException",
        "Timestamp": utc_text(datetime.now(UTC)),
    }
    return JSONResponse(body, status_code=status)
