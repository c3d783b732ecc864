"""Digests of text. Pure."""

import hashlib


def digest(*parts: str) -> str:
    """Return the SHA-256 of the parts as hex. Part boundaries matter: ("ab", "c")
    differs from ("a", "bc").
    """
    joined = "\x1f".join(parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()
