"""`login`, `logout`, `whoami`, `token`: whose token goes with a call."""

import argparse
import getpass
import json
import os
import sys
import time
from pathlib import Path

from cli.api import DEFAULT_URL, Api, TokenSource, checked_url
from cli.commands import Tree, program_name
from cli.errors import CommandError, NoConnectionError
from cli.session_file import AzureLogin, Session, forget_session, keep_session, read_session
from cli.terminal import Terminal, moment

_RENEW_BEFORE_S = 120.0  # a token must outlive the question that it is sent with
_TOKENS_FILE = "tokens.json"  # of local/run_all
_LOCAL_DATA = Path(".local/data")  # below the folder in which the stack was started
_MISSING = 404


def register(tree: Tree) -> None:
    """The commands of this file."""
    login = tree.leaf("login", sign_in, "sign in: store a token that only you can read")
    login.add_argument("--token", help="a token; the default is to ask for one")
    login.add_argument("--dev-user", metavar="NAME", help="a user of the local stack, such as anna")
    login.add_argument("--azure", action="store_true", help="use your Azure sign-in or managed identity")
    login.add_argument("--browser", action="store_true", help="with --azure: sign in with a browser")
    login.add_argument(
        "--device-code", action="store_true", help="with --azure: sign in with a code on another device"
    )
    login.add_argument("--app-id", metavar="ID", help="with --azure: the app's registration")
    login.add_argument("--scope", help="with --azure: the whole scope (default GROUNDWORK_SCOPE)")
    login.add_argument("--tenant", metavar="ID", help="with --azure: the tenant to sign in to")
    login.add_argument("--client-id", metavar="ID", help="with --azure: the client that requests the token")
    tree.leaf("logout", sign_out, "sign out: delete the token")
    tree.leaf("whoami", who_am_i, "show who you are and what you may do")
    tree.leaf("token", print_token, "print your token, for other programs")


def wanted_url(given: argparse.Namespace) -> str:
    """Return the app's address: --url, GROUNDWORK_URL, that of the session, or a local stack's."""
    explicit = _explicit_url(given)
    if explicit:
        return explicit
    kept = None if os.environ.get("GROUNDWORK_TOKEN", "").strip() else read_session()
    return kept.url if kept else DEFAULT_URL


def _explicit_url(given: argparse.Namespace) -> str | None:
    text = getattr(given, "url", None) or os.environ.get("GROUNDWORK_URL", "").strip()
    return checked_url(text) if text else None


def token_for(url: str) -> TokenSource:
    """GROUNDWORK_TOKEN, or the token that `login` kept for this app; renewed when it is Azure's and ends.

    Raises:
        CommandError: there is none.
    """
    given = os.environ.get("GROUNDWORK_TOKEN", "").strip()
    if given:
        if not given.isascii() or not given.isprintable():
            raise CommandError(
                "GROUNDWORK_TOKEN is not a token.", f"`{program_name()} token` prints that of a session."
            )
        return lambda _renew: given
    kept = read_session()
    if kept is None or kept.url != url:
        where = "" if kept is None else f" You are signed in at {kept.url}."
        raise CommandError(
            f"You are not signed in at {url}.{where}",
            f"Run `{program_name()} login`, or set GROUNDWORK_TOKEN.",
            "Users of a local stack sign in by name: `login --dev-user anna`.",
        )
    return _SessionToken(kept)


class _SessionToken:
    """A session's token; a new one before it ends, and when it was refused."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __call__(self, renew: bool) -> str:
        ends = self._session.expires_at
        is_ending = ends is not None and ends - time.time() < _RENEW_BEFORE_S
        if self._session.azure is not None and (renew or is_ending):
            from cli.azure_login import renewed

            self._session = renewed(self._session)
            keep_session(self._session)
        return self._session.token


def sign_in(api: Api | None, terminal: Terminal, given: argparse.Namespace) -> None:
    """Keep a token, after asking the app whether it is good. One that is refused is not kept."""
    session = _session(given)
    url = session.url
    try:
        with Api(url, session.token) as app:
            who = identity_of(app)
    except NoConnectionError:
        who = None
        terminal.note(f"{url} does not respond, so the token was not tried.", "yellow")
    path = keep_session(session)
    shown = {"url": url, "kept_in": str(path), "expires_at": session.expires_at, "user": who}
    name = f" as {who.get('name') or who['user_id']}" if who else ""
    terminal.result(shown, f"Signed in at {url}{name}. Kept in {path}, readable by you alone.")


def sign_out(api: Api | None, terminal: Terminal, given: argparse.Namespace) -> None:
    """Forget the token. It stays good until it ends."""
    was_there = forget_session()
    words = "The token is deleted." if was_there else "There was no token."
    terminal.result({"forgotten": was_there}, words)


def who_am_i(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Print who the app takes the caller for."""
    who = {"url": api.url, **api.call("GET", "/me")}
    if terminal.as_json:
        terminal.json(who)
        return
    today = who.pop("today", [])
    for name, value in who.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        if shown not in (None, ""):
            terminal.say(f"{name + ':':<17} {shown}")
    for one in today:
        terminal.say(f"{one['resource'] + ':':<17} {one['used']:,.0f} today{_of(one['limit'])}")
    kept = None if os.environ.get("GROUNDWORK_TOKEN") else read_session()
    if kept and kept.expires_at:
        ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(kept.expires_at))
        terminal.say(f"{'token ends:':<17} {moment(ends)}")


def print_token(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Print the token of this app; a new one if it is Azure's and ends soon."""
    token = token_for(api.url)(False)
    terminal.result({"url": api.url, "token": token}, token)


def _of(limit: float) -> str:
    return f" of {limit:,.0f}" if limit else ", no limit"


def identity_of(api: Api) -> dict[str, object] | None:
    """Who the app takes the caller for; None of an app that is too old to say so.

    Raises:
        CommandError: it believes none of it.
    """
    try:
        return api.call("GET", "/me")
    except CommandError as failed:
        if failed.status != _MISSING:
            raise
        api.call("GET", "/documents", params={"limit": 1})
        return None


def _session(given: argparse.Namespace) -> Session:
    if given.dev_user:
        return _session_of_the_stack(_explicit_url(given), given.dev_user)
    url = wanted_url(given)
    if given.azure or given.browser or given.device_code:
        from cli.azure_login import sign_in as sign_in_to_azure

        return sign_in_to_azure(url, _azure_login(given))
    token = given.token.strip() if given.token else _asked_token()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise CommandError("That is not a token.", "Users of a local stack sign in with --dev-user.")
    return Session(url, token)


def _asked_token() -> str:
    """Asked for, it does not stay in the shell's history; from a pipe, it is the first line."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().strip()
    return getpass.getpass("Token: ").strip()


def _azure_login(given: argparse.Namespace) -> AzureLogin:
    scope = given.scope or os.environ.get("GROUNDWORK_SCOPE", "").strip()
    if given.app_id:
        scope = f"api://{given.app_id}/.default"
    if not scope:
        raise CommandError(
            "For which app?",
            "Give --app-id (the client id of the app's registration) or --scope, or set GROUNDWORK_SCOPE.",
        )
    if given.browser:
        return AzureLogin(scope, "browser", given.tenant, given.client_id)
    return AzureLogin(scope, "device-code" if given.device_code else "default", given.tenant, given.client_id)


def _session_of_the_stack(url: str | None, name: str) -> Session:
    """Return a session with a user's token, as the local stack wrote it when it started.

    Args:
        url: the address that the stack must have; None = any.

    Raises:
        CommandError: there is no such stack here, it has another address, or it has no such user.
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
        raise CommandError(f"The stack has no user {name!r}.", f"It knows {', '.join(sorted(tokens))}.")
    return Session(stack_url, str(tokens[name]))


def _tokens_file() -> Path:
    """Return GROUNDWORK_DATA's file, else that of this folder, of a folder above it, or of this checkout."""
    given = os.environ.get("GROUNDWORK_DATA")
    if given:
        return Path(given) / _TOKENS_FILE
    here = Path.cwd()
    folders = (here, *here.parents, Path(__file__).resolve().parents[1])
    files = [folder / _LOCAL_DATA / _TOKENS_FILE for folder in folders]
    return next((file for file in files if file.is_file()), files[0])
