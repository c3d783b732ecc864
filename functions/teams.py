"""The route POST /api/messages, which authenticates, stores and acknowledges messages from Teams and other
chat channels.

Channels resend activities that are not acknowledged within 15 s. Therefore nothing here waits for a model: a
separate orchestration posts the answer to the conversation.
"""

from fastapi import APIRouter, Request, Response

from functions.http.api_route import ApiRoute
from functions.http.bodies import MAX_BODY_BYTES, read_body
from functions.http.contracts import Reply, contract, json_reply
from functions.http.requests import Durable, only_header
from functions.http.responses import json_response
from shared import wiring
from shared.platform.errors import CallerError, NotAuthenticatedError
from shared.platform.instances import Instances
from shared.teams.activities import ActivityAnswer, ChannelActivity
from shared.teams.models import BotActivity
from shared.teams.turns import handle

router = APIRouter(tags=["Channels"], route_class=ApiRoute)

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "x-arr-log-id")


@router.post(
    "/api/messages",
    **contract(
        "Messages from Teams and other chat channels, with a token of the Bot Service",
        Reply(202, "Accepted; the answer is written into the conversation."),
        json_reply(200, "A response that the channel waits for.", ActivityAnswer),
        body=ChannelActivity,
    ),
)
async def receive_activity(req: Request, client: Durable) -> Response:
    """Accept an activity that a chat channel sent. The reply is 202, or 200 with a body if the channel waits
    for a result.
    """
    activity = await _authenticated_activity(req)
    if activity.kind == "ignored":
        return json_response({}, 200 if activity.activity_type == "invoke" else 202)

    answer = await handle(activity, wiring.get_services(), Instances(client))
    return Response(status_code=202) if answer is None else json_response(answer)


async def _authenticated_activity(req: Request) -> BotActivity:
    """Authenticate and parse an activity of a chat channel.

    Raises:
        NotAuthenticatedError: (401) the token is missing or invalid.
        AccessDeniedError: (403) the sender belongs to another tenant.
        PayloadTooLargeError, SlowBodyError: (413, 408) as `read_body`.
        CallerError: (400) the body isn't an activity.
    """
    inbox = wiring.get_services().bot_inbox
    if inbox is None:
        raise NotAuthenticatedError(
            "No bot is configured.", "Set BOT_APP_ID as described in docs/settings.md."
        )
    token = only_header(req, "authorization")
    body = await read_body(req.stream(), MAX_BODY_BYTES)
    activity = await inbox.receive(token or None, body, _peer(req))
    # The content type is checked only after the token, so that strangers learn nothing. HTML forms can't send
    # JSON.
    if req.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise CallerError("The Content-Type is not JSON.", "Send the header Content-Type: application/json.")
    return activity


def _peer(req: Request) -> str | None:
    """Return the IP address of the client, or None if it can't be trusted or if a web page sent the request.

    Behind a proxy, every client appears to have the address of this machine. Proxies are recognised by their
    headers, or by the host name of the request.
    """
    host = req.headers.get("host", "").strip().lower()
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name not in _LOOPBACK_NAMES or "origin" in req.headers:
        return None
    if req.client is None or any(header in req.headers for header in _FORWARDED):
        return None
    return str(req.client.host)
