"""Whether Azure clients look for a proxy in the environment: only where one is named.

Otherwise their transport reads ~/.netrc in a thread before every request, and for nothing: these services
take no password from there.
"""

import urllib.request
from typing import Any


def environment_options() -> dict[str, Any]:
    """Options of an aio client's transport."""
    return {"use_env_settings": bool(urllib.request.getproxies())}
