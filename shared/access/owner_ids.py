"""Ids that begin with a keyed digest of their owner, so that erasing a person can delete by prefix. Pure.

Ids appear in logs and URLs, and people's ids are known. The key (OWNER_ID_KEY) prevents others from linking
the two. It must never change, or erasure would no longer find older data.
"""

import hmac

PREFIX_CHARS = 16  # 64 bits: in an organisation of a million, two share a prefix with a probability of 3e-8
_UNIQUE_CHARS = 16  # unique among one owner's ids


def owner_prefix(user_id: str, key: str) -> str:
    """Return the 16 hexadecimal digits that begin all ids of a person's data.

    Args:
        key: OWNER_ID_KEY.
    """
    signed = hmac.new(key.encode(), user_id.encode("utf-8", "surrogatepass"), "sha256")
    return signed.hexdigest()[:PREFIX_CHARS]


def owned_id(user_id: str, key: str, unique: str) -> str:
    """Return an id of 32 hexadecimal digits for data of a person.

    Args:
        key: OWNER_ID_KEY.
        unique: hexadecimal digits, random or a digest; the first 16 are used.

    Raises:
        ValueError: `unique` has fewer than 16 digits.
    """
    if len(unique) < _UNIQUE_CHARS:
        raise ValueError(f"{len(unique)} digits don't make an id unique; it takes {_UNIQUE_CHARS}")
    return owner_prefix(user_id, key) + unique[:_UNIQUE_CHARS]
