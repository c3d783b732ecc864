"""Addresses: where an activity may say that it came from. Looks at them, opens none.

The Bot Service's are in `bot_clouds`: only hosts that serve channels, since anybody can have a name below
sharepoint.com or blob.core.windows.net.
"""

from urllib.parse import SplitResult, urlsplit

LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")
MAX_ADDRESS_CHARS = 8000  # of files: with their signatures some 1,500 were seen, and names make them longer


def address_parts(address: str) -> SplitResult | None:
    """The parts of an http address that means the same to everyone who reads it; None for any other."""
    if len(address) > MAX_ADDRESS_CHARS or not address.isascii() or not address.isprintable():
        return None
    if "\\" in address or " " in address:  # some take a backslash for a slash
        return None
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or "@" in parts.netloc:
        return None
    return parts


def origin(parts: SplitResult) -> tuple[str, str, int]:
    """Scheme, host and port: what two addresses of one server share."""
    return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def is_on(host: str, names: tuple[str, ...]) -> bool:
    """Whether a host is one of `names`, or lies below one that begins with a dot."""
    return any(host.endswith(name) if name.startswith(".") else host == name for name in names)


def is_service(parts: SplitResult, hosts: tuple[str, ...]) -> bool:
    """Whether the Bot Service of a cloud with these hosts is there, so that a token of ours may go there."""
    scheme, host, port = origin(parts)
    return scheme == "https" and port == 443 and is_on(host, hosts)


def is_loopback(parts: SplitResult) -> bool:
    """Whether the address stays on this machine."""
    return parts.hostname in LOOPBACK_HOSTS
