"""Ids that begin with a keyed digest of their owner, so that erasing a person deletes by prefix. Pure.

The key (OWNER_ID_KEY) keeps others from telling by an id whose it is: ids stand in logs and addresses, and
the ids of people are known. It must never change, or erasure would no longer find what is older.
"""

import hmac

PREFIX_CHARS = 16  # 64 bits: in an organisation of a million, two share a prefix with a probability of 3e-8
_UNIQUE_CHARS = 16  # one owner's ids alone have to differ


def owner_prefix(user_id: str, key: str) -> str:
    """Return the 16 hexadecimal digits with which the ids of everything of a person begin.

    Args:
        key: OWNER_ID_KEY.
    """
    signed = hmac.new(key.encode(), user_id.encode("utf-8", "surrogatepass"), "sha256")
    return signed.hexdigest()[:PREFIX_CHARS]


def owned_id(user_id: str, key: str, unique: str) -> str:
    """Return an id of 32 hexadecimal digits for something of a person's.

    Args:
        key: OWNER_ID_KEY.
        unique: hexadecimal digits, random or a digest; the first 16 count.

    Raises:
        ValueError: `unique` has fewer than 16 digits.
    """
    if len(unique) < _UNIQUE_CHARS:
        raise ValueError(f"{len(unique)} digits don't make an id unique; it takes {_UNIQUE_CHARS}")
    return owner_prefix(user_id, key) + unique[:_UNIQUE_CHARS]
