"""Validation of web page URLs and of the network addresses behind them. Pure.

The list of networks is our own, because `ipaddress.is_global` accepts Azure's 168.63.129.16 and IPv6
addresses that embed a private IPv4 one. Unknown addresses count as private.
Source: IANA, IPv4 and IPv6 Special-Purpose Address Registries.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

from yarl import URL

from shared.platform.errors import InvalidQueryError

MAX_URL_CHARS = 2_000
_PORTS = (80, 443)
_PRIVATE_V4 = tuple(
    map(
        IPv4Network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24"),
            *("192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
            *("224.0.0.0/4", "240.0.0.0/4"),
            "168.63.129.16/32",  # Azure platform services, which every virtual network can reach
        ),
    )
)
_PUBLIC_V6 = IPv6Network("2000::/3")
# Ranges within 2000::/3 that are not public: protocol assignments with Teredo, documentation, 6to4 (embeds
# IPv4) and AS112.
_PRIVATE_V6 = tuple(
    map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"))
)
_NAT64 = IPv6Network("64:ff9b::/96")
_URL = re.compile(r"https?://[^\s<>\"'`\\]+", re.IGNORECASE)
_NEVER = frozenset(' \\"<>^`{|}')
_ENDING = ".,;:!?)]}*_"


def may_dial(address: str, port: int) -> bool:
    """Return whether the app may connect to an IP address and port: a public address, port 80 or 443."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    return port in _PORTS and _is_public(ip)


def _is_public(ip: IPv4Address | IPv6Address) -> bool:
    if isinstance(ip, IPv4Address):
        return not any(ip in network for network in _PRIVATE_V4)
    inner = ip.ipv4_mapped or (IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else None)
    if inner is not None:
        return ip.scope_id is None and _is_public(inner)
    return ip.scope_id is None and ip in _PUBLIC_V6 and not any(ip in network for network in _PRIVATE_V6)


def page_address(url: str) -> str:
    """Normalise a page's URL: without fragment, scheme and host in lower case, ASCII only (`bücher` becomes
    `b%C3%BCcher`, or punycode in a host).

    Raises:
        InvalidQueryError: it isn't a plain web URL: http or https, a host, no user, and the scheme's own
            port.
    """
    address = url.strip()
    is_plain = address.isprintable() and not _NEVER & set(address)
    try:
        address = address if address.isascii() or not is_plain else _encode(address)
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _not_plain() from None
    usual_port = {"http": 80, "https": 443}.get(parts.scheme)
    is_plain = is_plain and len(address) <= MAX_URL_CHARS
    if not (is_plain and usual_port and host and "@" not in parts.netloc and port in (None, usual_port)):
        raise _not_plain()
    netloc = f"[{host}]" if ":" in host else host
    return parts._replace(netloc=netloc, path=parts.path or "/", fragment="").geturl()


def _encode(address: str) -> str:
    return str(URL(address))


def page_addresses(text: str) -> frozenset[str]:
    """Return all valid web page URLs in a text, normalised by `page_address`."""
    urls = _URL.findall(text)
    return plain_addresses([*urls, *(url.rstrip(_ENDING) for url in urls)])


def plain_addresses(urls: Iterable[str]) -> frozenset[str]:
    """Return the valid web page URLs, normalised by `page_address`. Others are dropped."""
    plain: set[str] = set()
    for url in urls:
        with suppress(InvalidQueryError):
            plain.add(page_address(url))
    return frozenset(plain)


def host_of(url: str) -> str:
    """Return the host name of a URL, or an empty string."""
    return urlsplit(url).hostname or ""


def _not_plain() -> InvalidQueryError:
    return InvalidQueryError(
        "This is not the URL of a web page.",
        "Use http:// or https://, without a user, password or port.",
    )
