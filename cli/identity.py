"""`login`, `logout`, `whoami`, `token`: the identity of the user."""

import getpass
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Annotated

import typer

from cli import azure_login
from cli.api import DEFAULT_URL, Api, TokenSource, checked_url
from cli.commands import Call, Surroundings, app, option, program_name
from cli.errors import CommandError, NoConnectionError
from cli.session_file import AzureLogin, Session, Way, forget_session, keep_session, read_session
from cli.terminal import moment

_RENEW_BEFORE_S = (
    120.0  # tokens are renewed this early, so that they remain valid until a question is answered
)
_TOKENS_FILE = "tokens.json"  # name of the file that local/run_all writes
_LOCAL_DATA = Path(".local/data")  # relative to the folder in which the stack was started
_MISSING = 404


def connect(surroundings: Surroundings) -> Api:
    """Return a client of the app for the signed-in user.

    Raises:
        CommandError: no user is signed in to this app, or the URL is invalid.
    """

    def show_wait(seconds: float, why: str) -> None:
        surroundings.terminal.note(f"{why} Waiting {seconds:.0f} s.", "yellow")

    url = _url(surroundings.url)
    return Api(url, token_for(url), show_wait)


def _url(option: str | None) -> str:
    """Return the URL of the app from --url, GROUNDWORK_URL, the stored session or a local stack."""
    explicit = _explicit_url(option)
    if explicit:
        return explicit
    session = None if os.environ.get("GROUNDWORK_TOKEN", "").strip() else read_session()
    return session.url if session else DEFAULT_URL


def _explicit_url(option: str | None) -> str | None:
    text = option or os.environ.get("GROUNDWORK_URL", "").strip()
    return checked_url(text) if text else None


def token_for(url: str) -> TokenSource:
    """Return GROUNDWORK_TOKEN, or the stored token for this app. Azure tokens are renewed before they expire.

    Raises:
        CommandError: there is no token.
    """
    token = os.environ.get("GROUNDWORK_TOKEN", "").strip()
    if token:
        if not token.isascii() or not token.isprintable():
            raise CommandError(
                "GROUNDWORK_TOKEN does not contain a token.",
                f"`{program_name()} token` prints the token of your session.",
            )
        return lambda _rejected: token
    session = read_session()
    if session is None or session.url != url:
        where = "" if session is None else f" You are signed in at {session.url}."
        raise CommandError(
            f"You are not signed in at {url}.{where}",
            f"Run `{program_name()} login`, or set GROUNDWORK_TOKEN.",
            "Users of a local stack sign in by name: `login --dev-user anna`.",
        )
    return _SessionToken(session)


class _SessionToken:
    """A source of tokens for a session, which renews its token before it expires and after a 401."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._renewing = threading.Lock()

    def __call__(self, rejected: str) -> str:
        # Concurrent uploads notice the end of a token at the same time, but one of them renews it for all.
        with self._renewing:
            ends = self._session.expires_at
            is_ending = ends is not None and ends - time.time() < _RENEW_BEFORE_S
            is_rejected = rejected == self._session.token
            if self._session.azure is not None and (is_ending or is_rejected):
                self._session = azure_login.renewed(self._session)
                keep_session(self._session)
            return self._session.token


@app.add("login")
def sign_in(
    call: Call,
    *,
    token: Annotated[
        str | None, option("--token", "TOKEN", "Token to store; without it, the command asks for one")
    ] = None,
    dev_user: Annotated[
        str | None, option("--dev-user", "NAME", "User of the local stack, such as anna")
    ] = None,
    azure: Annotated[
        bool, typer.Option("--azure", help="Use your Azure sign-in or a managed identity")
    ] = False,
    browser: Annotated[bool, typer.Option("--browser", help="With --azure: sign in with a browser")] = False,
    device_code: Annotated[
        bool, typer.Option("--device-code", help="With --azure: sign in with a code on another device")
    ] = False,
    app_id: Annotated[
        str | None, option("--app-id", "ID", "With --azure: client id of the app registration")
    ] = None,
    scope: Annotated[
        str | None,
        option("--scope", "SCOPE", "With --azure: complete scope of the token (default: GROUNDWORK_SCOPE)"),
    ] = None,
    tenant: Annotated[str | None, option("--tenant", "ID", "With --azure: tenant to sign in to")] = None,
    client_id: Annotated[
        str | None, option("--client-id", "ID", "With --azure: client id that requests the token")
    ] = None,
) -> None:
    """Sign in and store a token that only you can read."""
    if dev_user:
        session = _session_of_the_stack(_explicit_url(call.surroundings.url), dev_user)
    elif azure or browser or device_code:
        way: Way = "browser" if browser else "device-code" if device_code else "default"
        login = AzureLogin(_scope(scope, app_id), way, tenant, client_id)
        session = azure_login.sign_in(_url(call.surroundings.url), login)
    else:
        session = Session(_url(call.surroundings.url), _valid_token(token or _typed_token()))
    url = session.url
    try:
        with Api(url, session.token) as app:
            who = identity_of(app)
    except NoConnectionError:
        who = None
        call.terminal.note(f"{url} does not respond, so the token was not checked.", "yellow")
    path = keep_session(session)
    summary = {"url": url, "kept_in": str(path), "expires_at": session.expires_at, "user": who}
    name = f" as {who.get('name') or who['user_id']}" if who else ""
    call.terminal.result(
        summary, f"Signed in at {url}{name}. The token is stored in {path}, readable only by you."
    )


@app.add("logout")
def sign_out(call: Call) -> None:
    """Sign out and delete the stored token."""
    was_there = forget_session()
    words = "The token is deleted." if was_there else "There was no stored token."
    call.terminal.result({"forgotten": was_there}, words)


@app.add("whoami")
def who_am_i(call: Call) -> None:
    """Show who you are and what you may do."""
    who = {"url": call.api.url, **call.api.call("GET", "/me")}
    if call.terminal.as_json:
        call.terminal.json(who)
        return
    today = who.pop("today", [])
    for name, value in who.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else value
        if text not in (None, ""):
            call.terminal.say(f"{name + ':':<17} {text}")
    for one in today:
        call.terminal.say(f"{one['resource'] + ':':<17} {one['used']:,.0f} today{_of(one['limit'])}")
    session = None if os.environ.get("GROUNDWORK_TOKEN") else read_session()
    if session and session.expires_at:
        ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(session.expires_at))
        call.terminal.say(f"{'token ends:':<17} {moment(ends)}")


@app.add("token")
def print_token(call: Call) -> None:
    """Print your token for use in other programs."""
    token = token_for(call.api.url)("")
    call.terminal.result({"url": call.api.url, "token": token}, token)


def _of(limit: float) -> str:
    return f" of {limit:,.0f}" if limit else ", no limit"


def identity_of(api: Api) -> dict[str, object] | None:
    """Return the app's view of the caller, or None if the app is too old to report it.

    Raises:
        CommandError: the app rejects the token.
    """
    try:
        return api.call("GET", "/me")
    except CommandError as failed:
        if failed.status != _MISSING:
            raise
        api.call("GET", "/documents", params={"limit": 1})
        return None


def _valid_token(text: str) -> str:
    token = text.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise CommandError("This is not a token.", "Users of a local stack sign in with --dev-user.")
    return token


def _typed_token() -> str:
    """Read a token from a terminal prompt or a pipe, so that it doesn't appear in the shell's history."""
    return getpass.getpass("Token: ") if sys.stdin.isatty() else sys.stdin.readline()


def _scope(scope: str | None, app_id: str | None) -> str:
    if app_id:
        return f"api://{app_id}/.default"
    scope = scope or os.environ.get("GROUNDWORK_SCOPE", "").strip()
    if not scope:
        raise CommandError(
            "No app registration is specified.",
            "Specify --app-id (the client id of the app registration) or --scope, or set GROUNDWORK_SCOPE.",
        )
    return scope


def _session_of_the_stack(url: str | None, name: str) -> Session:
    """Return a session for the user `name`, with a token that the local stack wrote when it started.

    Args:
        url: expected URL of the stack; None accepts any.

    Raises:
        CommandError: no stack is found here, its URL differs, or it has no such user.
    """
    path = _tokens_file()
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        tokens, stack_url = dict(content["tokens"]), str(content["url"])
    except (OSError, ValueError, KeyError, TypeError):
        raise CommandError(
            f"There are no tokens in {path}.",
            "Start the stack with `make run`, and run this command in the same folder.",
            "GROUNDWORK_DATA names the data folder of another stack.",
        ) from None
    if url not in (None, stack_url):
        raise CommandError(
            f"The tokens in {path} are for {stack_url}, not for {url}.", f"Add --url {stack_url}."
        )
    if name not in tokens:
        raise CommandError(
            f"The local stack has no user {name!r}.", f"Its users are {', '.join(sorted(tokens))}."
        )
    return Session(stack_url, str(tokens[name]))


def _tokens_file() -> Path:
    """Return the path of the tokens file: in GROUNDWORK_DATA, in the current folder or a parent of it, or in
    this checkout.
    """
    data_folder = os.environ.get("GROUNDWORK_DATA")
    if data_folder:
        return Path(data_folder) / _TOKENS_FILE
    here = Path.cwd()
    folders = (here, *here.parents, Path(__file__).resolve().parents[1])
    files = [folder / _LOCAL_DATA / _TOKENS_FILE for folder in folders]
    return next((file for file in files if file.is_file()), files[0])
