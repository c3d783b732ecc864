"""Local replacement of App Service Authentication, with the same URLs and a choice of sample users.

A browser signs in at `/.auth/login/aad` and gets a cookie that scripts cannot read. A request with this
cookie and without a token reaches the app with the development token added, so that neither the app nor the
web page depends on where it runs. Only requests to a loopback `Host` are handled, so that foreign host names
that resolve to this machine gain no access.
"""

import html
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from local.run_all.tokens import LIFETIME_S, USERS, mint_token

COOKIE = "AppServiceAuthSession"
LOGIN, LOGOUT = "/.auth/login/aad", "/.auth/logout"
SECRET_SETTING = "DEV_TOKEN_SECRET"  # noqa: S105 # the setting's name
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_PAGE = """<!doctype html><html lang="{language}"><meta charset="utf-8"><title>{title} – Groundwork</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><style>
:root{{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}}
body{{background:light-dark(#fdfcfa,#16191a);color:light-dark(#1d2323,#e6e8e6)}}
.name{{font-weight:650;font-size:1.05rem;color:light-dark(#0f5c56,#6cc7bd)}}
main{{max-width:26rem;margin:12vh auto;padding:0 1.25rem}}h1{{font-size:1.5rem}}
button{{display:block;width:100%;margin:.5rem 0;padding:.75rem 1rem;font:inherit;color:inherit;
text-align:left;cursor:pointer;background:transparent;border-radius:.5rem;
border:1px solid color-mix(in srgb,currentcolor 30%,transparent)}}
button:hover{{border-color:currentcolor}}small{{display:block;opacity:.75}}</style>
<main><p class="name">Groundwork</p><h1>{title}</h1>
<p>{text}</p>
<form method="post" action="{action}">{buttons}</form></main></html>"""
_WORDS = {
    "en": {
        "title": "Sign in",
        "text": "Ask questions and get answers from your documents, with the passages that prove them. "
        "This is a local installation: choose one of the sample users.",
    },
    "de": {
        "title": "Anmelden",
        "text": "Stellen Sie Fragen und erhalten Sie Antworten aus Ihren Dokumenten, mit den Stellen, die "
        "sie belegen. Dies ist eine lokale Installation: Wählen Sie eine der Beispielpersonen.",
    },
}
_BUTTON = '<button name="user" value="{user_id}">{name}<small>{about}</small></button>'


class SignIn:
    """ASGI middleware that signs in sample users. Without DEV_TOKEN_SECRET, it forwards all requests
    unchanged.
    """

    def __init__(self, app: ASGIApp, environment: Mapping[str, str]) -> None:
        self._app = app
        self._secret = environment.get(SECRET_SETTING, "")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._secret or not _is_loopback(Headers(scope=scope)):
            await self._app(scope, receive, send)
        elif scope["path"] in (LOGIN, LOGOUT):
            answer = await self._answer(Request(scope, receive))
            await answer(scope, receive, send)
        else:
            await self._app(_with_token(scope), receive, send)

    async def _answer(self, request: Request) -> Response:
        if request.url.path == LOGOUT:
            answer = RedirectResponse(_own_path(request.query_params.get("post_logout_redirect_uri")), 302)
            answer.delete_cookie(COOKIE)
            return answer
        if request.method == "GET":
            return _choice(request)
        if request.method != "POST" or request.headers.get("sec-fetch-site", "none") == "cross-site":
            return PlainTextResponse("", status_code=405)
        form = (await request.body()).decode("utf-8", "replace")
        user_id = form.removeprefix("user=")
        if user_id not in USERS:
            return PlainTextResponse("There is no such user.", status_code=400)
        user, roles = USERS[user_id]
        answer = RedirectResponse(_own_path(request.query_params.get("post_login_redirect_uri")), 303)
        token = mint_token(user, self._secret, roles=roles)
        answer.set_cookie(COOKIE, token, max_age=LIFETIME_S, httponly=True, samesite="lax")
        return answer


def _choice(request: Request) -> Response:
    action = html.escape(f"{LOGIN}?{request.url.query}")
    buttons = "".join(
        _BUTTON.format(
            user_id=html.escape(user.user_id),
            name=html.escape(user.name),
            about=html.escape(", ".join((user.department, *user.groups, *roles))),
        )
        for user, roles in USERS.values()
    )
    headers = {"Cache-Control": "no-store", "Vary": "Accept-Language", "X-Frame-Options": "DENY"}
    preferred = request.headers.get("accept-language", "").strip().lower()
    language = "de" if preferred.startswith("de") else "en"
    page = _PAGE.format(action=action, buttons=buttons, language=language, **_WORDS[language])
    return HTMLResponse(page, headers=headers)


def _is_loopback(headers: Headers) -> bool:
    try:
        return urlsplit(f"//{headers.get('host', '')}").hostname in _LOOPBACK
    except ValueError:
        return False


def _own_path(target: str | None) -> str:
    """Return the redirect target if it is a path on this origin, otherwise "/". This prevents open
    redirects.
    """
    is_own = target is not None and target.startswith("/") and not target.startswith(("//", "/\\"))
    return target if target and is_own else "/"


def _with_token(scope: Scope) -> Scope:
    headers = Headers(scope=scope)
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        cookie = None
    if cookie is None or "authorization" in headers:
        return scope
    bearer = (b"authorization", f"Bearer {cookie.value}".encode("latin-1"))
    return {**scope, "headers": [*scope["headers"], bearer]}
