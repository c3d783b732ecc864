"""Development tokens: what an identity provider would issue, signed with the data folder's own secret."""

import json
import os
import time
from pathlib import Path

import jwt

from samples.acl import SAMPLE_USERS, SampleUser

ISSUER = "groundwork-dev"
AUDIENCE = "groundwork"
LIFETIME_S = 12 * 3600
TOKENS_FILE = "tokens.json"
_ADMINISTRATOR = SampleUser("admin", "Administrator", department="operations", groups=())


def mint_token(
    user: SampleUser, secret: str, *, lifetime_s: int = LIFETIME_S, roles: tuple[str, ...] = ()
) -> str:
    """A signed token with the claims that the app reads from a real one."""
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
    """Tokens of the sample users and of an administrator, for `python -m cli login --dev-user anna`.

    Readable by their owner alone, as the secret that signs them is.
    """
    tokens = {user.user_id: mint_token(user, secret) for user in SAMPLE_USERS}
    tokens[_ADMINISTRATOR.user_id] = mint_token(_ADMINISTRATOR, secret, roles=("admin",))
    path, draft = data / TOKENS_FILE, data / f"{TOKENS_FILE}.new"
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"url": url, "tokens": tokens}, file)
    draft.replace(path)
    return path
