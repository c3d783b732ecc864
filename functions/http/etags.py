"""ETags of what can be edited, and the conditions that name them. Source: RFC 9110, sections 8.8.3 and 13.1.

An ETag is a digest of what the caller is shown, so it changes whenever that does, whoever changed it.
"""

import hashlib
import re
from collections.abc import Collection, Mapping

from pydantic import BaseModel

from functions.http.conditions import is_known
from functions.http.responses import Request, Response, json_response
from shared.platform.errors import PreconditionFailedError

_STRONG = re.compile(r'(?<![/\w])"([\x21\x23-\x7e]*)"')
_TAG_CHARS = 32
PASSING = frozenset({"history"})
"""Of a document: the seconds of the phase that goes on. Each phase that ends changes the status, too."""


def etag_of(view: BaseModel, leaving_out: Collection[str] = ()) -> str:
    """The ETag, without its quotes. `leaving_out`: fields that tell of time that passes, and of no change."""
    content = view.model_dump_json(exclude=set(leaving_out))
    return hashlib.sha256(content.encode()).hexdigest()[:_TAG_CHARS]


def tagged_response(
    request: Request, view: BaseModel, leaving_out: Collection[str] = (), status: int = 200
) -> Response:
    """The view with its ETag; 304 when the caller has this very state."""
    etag = etag_of(view, leaving_out)
    headers = {"ETag": f'"{etag}"', "Cache-Control": "private, no-cache"}
    if request.method == "GET" and is_known(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    return json_response(view, status, headers)


def is_conditional(headers: Mapping[str, str]) -> bool:
    """Whether a change is to hold for one version only."""
    return headers.get("if-match", "*").strip() != "*"


def require_match(headers: Mapping[str, str], etag: str) -> None:
    """Let a change go on only if the caller has seen the state that it changes. A weak ETag never matches.

    Raises:
        PreconditionFailedError: it has another ETag by now.
    """
    if is_conditional(headers) and etag not in _STRONG.findall(headers["if-match"]):
        raise PreconditionFailedError(
            "It was changed since you read it (If-Match).",
            "Read it again, and repeat the change if it still fits.",
        )
