"""Ids that begin with a keyed digest of their owner's user id, so that all data of a person can be deleted by
id prefix. Pure.

Ids appear in logs and URLs, and people's ids are known. The key (OWNER_ID_KEY) prevents others from linking
the two. It must never change, or erasure would no longer find older data.
"""

import hmac
from datetime import datetime

PREFIX_CHARS = 16  # 64 bits: among a million people, two share a prefix with a probability of 3e-8
# Characters of an id after its prefix.
_UNIQUE_CHARS = 16
_DATED = "s"  # not a hexadecimal digit, so that dated ids sort after all others of their owner
DATED_ID = r"[0-9a-f]{16}s[0-9a-f]{20}"
_LAST_MILLISECOND = 16**12 - 1  # dated ids count down from here: the year 10889


def owner_prefix(user_id: str, key: str) -> str:
    """Return the prefix of all ids of a person's data: 16 hexadecimal digits.

    Args:
        key: OWNER_ID_KEY.
    """
    signed = hmac.new(key.encode(), user_id.encode("utf-8", "surrogatepass"), "sha256")
    return signed.hexdigest()[:PREFIX_CHARS]


def owned_id(user_id: str, key: str, unique: str) -> str:
    """Return an id of 32 hexadecimal digits for a person's data. It begins with the owner's prefix.

    Args:
        key: OWNER_ID_KEY.
        unique: hexadecimal digits, random or a digest; the first 16 are used.

    Raises:
        ValueError: `unique` has fewer than 16 digits.
    """
    if len(unique) < _UNIQUE_CHARS:
        raise ValueError(f"unique has {len(unique)} digits, but an id needs {_UNIQUE_CHARS}")
    return owner_prefix(user_id, key) + unique[:_UNIQUE_CHARS]


def dated_id(user_id: str, key: str, at: datetime, unique: str) -> str:
    """Return an id for a person's data that begins with the owner's prefix and sorts by time, newest first.

    Args:
        key: OWNER_ID_KEY.
        at: an instant with zone; only milliseconds count.
        unique: 8 hexadecimal digits, random.
    """
    left = _LAST_MILLISECOND - int(at.timestamp() * 1000)
    return f"{owner_prefix(user_id, key)}{_DATED}{left:012x}{unique}"


def dated_range(prefix: str, after: str = "") -> tuple[str, str]:
    """Return exclusive lower and upper bounds that contain an owner's dated ids. With `after`, they contain
    only ids that sort after it.
    """
    return after or prefix + _DATED, prefix + chr(ord(_DATED) + 1)
