"""Who may ask: by key, or by a token as a directory issues them. Pure.

As Azure OpenAI: paths that name a deployment take a key as `api-key` and a token as bearer; /v1 and
/openai/v1 take a key as bearer, too.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Keys:
    """What is asked for; with neither, anybody may ask."""

    key: str | None = None
    token: str | None = None

    def admit(self, headers: Mapping[str, str]) -> bool:
        """Whether a request with these headers may pass. Names of headers are in lower case."""
        if self.key is None and self.token is None:
            return True
        if (given := headers.get("api-key")) is not None:
            return _same(given, self.key)
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return False
        return _same(bearer, self.token) or _same(bearer, self.key)


def _same(given: str, expected: str | None) -> bool:
    return expected is not None and hmac.compare_digest(given.encode(), expected.encode())
