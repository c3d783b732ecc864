"""Hashing of strings. Pure."""

import hashlib


def digest(*parts: str) -> str:
    """Return the SHA-256 digest of the parts in hexadecimal. Parts are separated: ("ab", "c") and ("a", "bc")
    have different digests.
    """
    joined = "\x1f".join(parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()
