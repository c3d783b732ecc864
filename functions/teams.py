"""POST /api/messages: Teams and the other channels of the Bot Service. Believed, taken down, acknowledged.

The channel waits 15 s, and sends again what was not acknowledged: nothing here waits for a model, and the
answer is written into the conversation by a separate orchestration. What belongs to channels is imported
when one first writes; other requests never pay for it.
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
        "What Teams and other chat channels send, with a token of the Bot Service",
        Reply(202, "Accepted; the answer is written into the conversation."),
        json_reply(200, "An answer that the channel waits for.", ActivityAnswer),
        body=ChannelActivity,
    ),
)
async def receive_activity(req: Request, client: Durable) -> Response:
    """An activity of a channel. 202; 200 with a body for those that wait for one."""
    activity = await _authenticated_activity(req)
    if activity.kind == "ignored":
        return json_response({}, 200 if activity.activity_type == "invoke" else 202)

    answer = await handle(activity, wiring.get_services(), Instances(client))
    return Response(status_code=202) if answer is None else json_response(answer)


async def _authenticated_activity(req: Request) -> BotActivity:
    """
    Raises:
        NotAuthenticatedError: (401) its sender proves nothing, or not enough.
        AccessDeniedError: (403) somebody of another tenant.
        PayloadTooLargeError, SlowBodyError: (413, 408) as `read_body`.
        CallerError: (400) no activity.
    """
    inbox = wiring.get_services().bot_inbox
    if inbox is None:
        raise NotAuthenticatedError("No bot is configured.", "Set BOT_APP_ID; see docs/settings.md.")
    token = only_header(req, "authorization")
    body = await read_body(req.stream(), MAX_BODY_BYTES)
    activity = await inbox.receive(token or None, body, _peer(req))
    # After the token: strangers learn nothing of what would be taken. A browser's form cannot say this.
    if req.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise CallerError("The Content-Type is not JSON.", "Send Content-Type: application/json.")
    return activity


def _peer(req: Request) -> str | None:
    """The address of the client; None where it is not known for sure, or a web page sent this.

    Behind a proxy everybody seems to be this machine: a proxy gives itself away by its headers, or by the
    name under which the app was called.
    """
    host = req.headers.get("host", "").strip().lower()
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name not in _LOOPBACK_NAMES or "origin" in req.headers:
        return None
    if req.client is None or any(header in req.headers for header in _FORWARDED):
        return None
    return str(req.client.host)
