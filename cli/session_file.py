"""Who is signed in, as `login` keeps it: one file that its owner alone can read.

A token is kept with the address of its app, and is sent to no other.
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
    """How a new token of Entra ID is obtained.

    Attributes:
        way: `default` asks the identities that are there (Azure CLI, managed identity, environment); the
            others ask a person.
        record: whom the token is of, as azure-identity writes it; no secret.
    """

    scope: str
    way: Way = "default"
    tenant_id: str | None = None
    client_id: str | None = None
    record: str | None = None


@dataclass(frozen=True)
class Session:
    """A token for one app.

    Attributes:
        expires_at: in seconds since 1970; None when that is not known.
    """

    url: str
    token: str
    expires_at: float | None = None
    azure: AzureLogin | None = None


def session_path() -> Path:
    """Where it is kept."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "groundwork" / "session.json"


def read_session() -> Session | None:
    """The kept session; None when there is none.

    Raises:
        CommandError: others could have read it, or it is not as it was written.
    """
    path = session_path()
    if not path.exists():
        return None
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise CommandError(
            f"{path} is open to others.", f"Run `chmod 600 {path}`, and get a new token: it may be known."
        )
    try:
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        azure = kept.pop("azure", None)
        return Session(**kept, azure=None if azure is None else AzureLogin(**azure))
    except (ValueError, TypeError, AttributeError):
        raise CommandError(f"{path} cannot be read.", f"Run `{program_name()} login` again.") from None


def keep_session(session: Session) -> Path:
    """Keep it; written aside and moved into place, so that no moment shows it to others."""
    path = session_path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_suffix(f".{os.getpid()}")  # two commands may renew a token at the same time
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(session), file)
    draft.replace(path)
    return path


def forget_session() -> bool:
    """Delete it. Whether there was one."""
    there = session_path().exists()
    session_path().unlink(missing_ok=True)
    return there
