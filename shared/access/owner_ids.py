"""Ids that begin with a keyed digest of the owner, so that all data of a person can be deleted by id prefix.
Pure.

Ids appear in logs and URLs, and people's ids are known. The key (OWNER_ID_KEY) prevents others from linking
the two. It must never change, or erasure would no longer find older data.
"""

import hmac
from datetime import datetime

PREFIX_CHARS = 16  # 64 bits: in an organisation of a million, two share a prefix with a probability of 3e-8
_UNIQUE_CHARS = 16  # unique among one owner's ids
_DATED = "s"  # sorts after the hexadecimal digits of other ids
DATED_ID = r"[0-9a-f]{16}s[0-9a-f]{20}"
_LAST_MILLISECOND = 16**12 - 1  # dated ids count down from here: the year 10889


def owner_prefix(user_id: str, key: str) -> str:
    """Return the prefix shared by all ids of a person's data: 16 hexadecimal digits.

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


def dated_id(user_id: str, key: str, at: datetime, unique: str) -> str:
    """Return an id for a person's data that sorts by time, newest first.

    Args:
        key: OWNER_ID_KEY.
        at: an instant with zone; only milliseconds count.
        unique: 8 hexadecimal digits, random.
    """
    left = _LAST_MILLISECOND - int(at.timestamp() * 1000)
    return f"{owner_prefix(user_id, key)}{_DATED}{left:012x}{unique}"


def dated_range(prefix: str, after: str = "") -> tuple[str, str]:
    """Return exclusive lower and upper bounds for an owner's dated ids that sort after `after`; "" covers all
    of them.
    """
    return after or prefix + _DATED, prefix + chr(ord(_DATED) + 1)
