"""The token that `login` keeps: one file that its owner alone can read."""

import os
import stat
from pathlib import Path


def token_path() -> Path:
    """Where it is kept."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "groundwork" / "token"


def read_token() -> str:
    """The kept token; "" when there is none.

    Raises:
        PermissionError: others could have read it, or written it.
    """
    path = token_path()
    if not path.exists():
        return ""
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise PermissionError(f"{path} is open to others: run `chmod 600 {path}`, and get a new token.")
    return path.read_text(encoding="ascii").strip()


def keep_token(token: str) -> Path:
    """Keep it; written aside and moved into place, so that no moment shows it to others."""
    path = token_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{token}\n")
    draft.rename(path)
    return path
