"""Development tokens: what an identity provider would issue, signed with the data folder's own secret."""

import time

import jwt

from samples.acl import SampleUser

ISSUER = "groundwork-dev"
AUDIENCE = "groundwork"
LIFETIME_S = 12 * 3600


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
