"""Entra ID tokens from azure-identity. Only this module imports that library, and only on demand.

Not tested against Entra ID; tests use the library's managed identity credential against a local server.
"""

from datetime import datetime
from typing import Any

from cli.errors import CommandError
from cli.session_file import AzureLogin, Session

# The token cache is encrypted with the system key ring or, without one, a file that only its owner can read.
_CACHE = "groundwork-cli"


def sign_in(url: str, login: AzureLogin) -> Session:
    """Return a session for the identity that is signed in to Azure, signing in if necessary.

    Raises:
        CommandError: no identity is available, or it can't get a token for this app.
    """
    from azure.core.exceptions import AzureError

    credential = _credential(login, may_ask=True)
    record: str | None = None
    try:
        if login.way != "default":
            record = str(credential.authenticate(scopes=[login.scope]).serialize())
        got = credential.get_token(login.scope)
    except (AzureError, ValueError) as failed:
        raise _login_error(failed) from None
    finally:
        credential.close()
    stored = AzureLogin(login.scope, login.way, login.tenant_id, login.client_id, record)
    return Session(url, got.token, float(got.expires_on), stored)


def renewed(session: Session) -> Session:
    """Return the session with a new token, without user interaction.

    Raises:
        CommandError: interaction is required: run `login` again.
    """
    from azure.core.exceptions import AzureError

    if session.azure is None:
        return session
    credential = _credential(session.azure, may_ask=False)
    try:
        got = credential.get_token(session.azure.scope)
    except (AzureError, ValueError) as failed:
        raise _login_error(failed) from None
    finally:
        credential.close()
    return Session(session.url, got.token, float(got.expires_on), session.azure)


def _credential(login: AzureLogin, *, may_ask: bool) -> Any:
    from azure.identity import (
        AuthenticationRecord,
        DefaultAzureCredential,
        DeviceCodeCredential,
        InteractiveBrowserCredential,
        TokenCachePersistenceOptions,
    )

    if login.way == "default":
        return DefaultAzureCredential(managed_identity_client_id=login.client_id)
    options: dict[str, Any] = {
        "tenant_id": login.tenant_id,
        "client_id": login.client_id,
        "cache_persistence_options": TokenCachePersistenceOptions(
            name=_CACHE, allow_unencrypted_storage=True
        ),
        "disable_automatic_authentication": not may_ask,
    }
    if login.record is not None:
        options["authentication_record"] = AuthenticationRecord.deserialize(login.record)
    arguments = {name: value for name, value in options.items() if value is not None}
    if login.way == "browser":
        return InteractiveBrowserCredential(**arguments)
    return DeviceCodeCredential(prompt_callback=_show_code, **arguments)


def _show_code(address: str, code: str, _until: datetime) -> None:
    import sys

    print(f"Open {address} and type {code}", file=sys.stderr, flush=True)


def _login_error(failed: Exception) -> CommandError:
    """Return an error with the first line of azure-identity's message, which lists the identities tried and
    contains no secret.
    """
    lines = str(failed).strip().splitlines()
    return CommandError(
        f"Azure returned no token: {lines[0] if lines else type(failed).__name__}",
        "Sign in with `az login`, or use `login --azure --device-code`.",
        "Check the scope of the app registration: --app-id, --scope, or GROUNDWORK_SCOPE.",
    )
