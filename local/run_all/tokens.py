"""Secrets of a data folder, and development tokens signed with one of them."""

import json
import os
import secrets
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import jwt

from samples.acl import SAMPLE_USERS, SampleUser

FILE_NAME = "secrets.json"
HOST_KEY_FILE = "master-key"


@dataclass(frozen=True)
class StackSecrets:
    """The secrets that the servers of one stack share. They protect nothing beyond this machine."""

    search_key: str
    model_key: str
    token_secret: str
    owner_id_key: str


def load_or_make_secrets(data: Path) -> StackSecrets:
    """Return the secrets of a data folder. Missing ones are generated and stored, so they survive
    restarts.
    """
    path = data / FILE_NAME
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    new_secrets = StackSecrets(
        **{field.name: stored.get(field.name) or secrets.token_hex(32) for field in fields(StackSecrets)}
    )
    if asdict(new_secrets) != stored:
        _write_private(path, json.dumps(asdict(new_secrets)))
    return new_secrets


def host_key(folder: Path) -> str:
    """Return the master key of the host that uses this data folder. It is created on first use."""
    path = folder / HOST_KEY_FILE
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _write_private(path, secrets.token_hex(32))
    return path.read_text(encoding="utf-8")


def _write_private(path: Path, text: str) -> None:
    """Write a file atomically, readable only by its owner."""
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)


ISSUER = "groundwork-dev"
AUDIENCE = "groundwork"
LIFETIME_S = 12 * 3600
TOKENS_FILE = "tokens.json"
_ADMINISTRATOR = SampleUser("admin", "Administrator", department="operations", groups=())
USERS: dict[str, tuple[SampleUser, tuple[str, ...]]] = {
    **{user.user_id: (user, ()) for user in SAMPLE_USERS},
    _ADMINISTRATOR.user_id: (_ADMINISTRATOR, ("admin",)),
}
"""The users who can sign in on this machine, with their application roles, by user id."""


def mint_token(
    user: SampleUser, secret: str, *, lifetime_s: int = LIFETIME_S, roles: tuple[str, ...] = ()
) -> str:
    """Return a signed development token for a user, with the claims that the app reads from real tokens."""
    now = int(time.time())
    claims: dict[str, object] = {
        "sub": user.user_id,
        "name": user.name,
        "department": user.department,
        "org_id": user.org_id,
        "groups": list(user.groups),
        "roles": list(roles),
        "iss": ISSUER,
        "aud": AUDIENCE,
        "iat": now,
        "exp": now + lifetime_s,
    }
    return jwt.encode(claims, secret, algorithm="HS256")


def write_tokens_file(data: Path, url: str, secret: str) -> Path:
    """Write tokens for the sample users and an administrator to a file, which `cli login --dev-user` reads.
    Return its path.

    Only the owner of the file can read it, as with the secret that signs the tokens.
    """
    tokens = {user_id: mint_token(user, secret, roles=roles) for user_id, (user, roles) in USERS.items()}
    path = data / TOKENS_FILE
    _write_private(path, json.dumps({"url": url, "tokens": tokens}))
    return path


def read_stack_url(data: Path) -> str:
    """Return the URL of the app that `write_tokens_file` stored when the stack last started.

    Raises:
        FileNotFoundError: no stack has started with this data folder.
    """
    return str(json.loads((data / TOKENS_FILE).read_text(encoding="utf-8"))["url"])
