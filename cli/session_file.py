"""The session stored by `login`, in a file that only its owner can read.

A token is stored with the URL of its app and sent to no other.
"""

import json
import os
import stat
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from cli.commands import program_name
from cli.errors import CommandError

Way = Literal["default", "browser", "device-code"]


@dataclass(frozen=True)
class AzureLogin:
    """The sign-in method of a session, which is used again to obtain a new Entra ID token.

    Attributes:
        way: `default` tries the available identities (Azure CLI, managed identity, environment); the others
            are interactive.
        record: azure-identity's authentication record, which contains no secret.
    """

    scope: str
    way: Way = "default"
    tenant_id: str | None = None
    client_id: str | None = None
    record: str | None = None


@dataclass(frozen=True)
class Session:
    """A stored token and the URL of the app that it is valid for.

    Attributes:
        expires_at: Unix time in seconds; None if unknown.
    """

    url: str
    token: str
    expires_at: float | None = None
    azure: AzureLogin | None = None


def session_path() -> Path:
    """Return the path of the session file."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "groundwork" / "session.json"


def read_session() -> Session | None:
    """Return the stored session, or None if there is none.

    Raises:
        CommandError: other users could have read the file, or it is corrupt.
    """
    path = session_path()
    if not path.exists():
        return None
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise CommandError(
            f"{path} can be read by other users.",
            f"Run `chmod 600 {path}`, and get a new token: others may have read this one.",
        )
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        azure = values.pop("azure", None)
        return Session(**values, azure=None if azure is None else AzureLogin(**azure))
    except (ValueError, TypeError, AttributeError):
        raise CommandError(f"{path} cannot be read.", f"Run `{program_name()} login` again.") from None


def keep_session(session: Session) -> Path:
    """Store the session and return the file's path. The file is created with its final permissions, then
    moved.
    """
    path = session_path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_suffix(
        f".{os.getpid()}"
    )  # the name is unique, because several commands may renew a token at the same time
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(session), file)
    draft.replace(path)
    return path


def forget_session() -> bool:
    """Delete the session. Return whether there was one."""
    there = session_path().exists()
    session_path().unlink(missing_ok=True)
    return there
