"""Which nodes of a page a reader sees."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_NEVER_SHOWN = frozenset(
    "script style template noscript nav head title meta link iframe object embed canvas audio video svg "
    "annotation button select datalist input textarea map area col colgroup".split()
)
_HIDING_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


def is_shown(node: "LexborNode") -> bool:
    """False for scripts, navigation, controls, comments, and what is hidden by attribute or inline style."""
    tag = node.tag or ""
    if tag in _NEVER_SHOWN or tag.startswith(("-comment", "!")):
        return False
    attributes = node.attributes
    if not attributes:
        return True
    return not (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or attributes.get("role") == "navigation"
        or _HIDING_STYLE.search(attributes.get("style") or "")
    )
