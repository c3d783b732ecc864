"""Digests of text. Pure."""

import hashlib


def digest(*parts: str) -> str:
    """sha256, as hex, of the parts; their borders count."""
    joined = "\x1f".join(parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()
