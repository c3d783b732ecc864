"""Checks of single settings, for the settings. Pure; a message names the variable, with an example."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from pydantic.fields import FieldInfo

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def check_address(name: str, address: str | None, example: str) -> None:
    """
    Raises:
        ValueError: no address, or one that is no http or https address, or that holds a user's name.
    """
    parts = urlsplit(address or "")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        problem = "is not an http address" if address else "is missing"
        raise ValueError(f"{name} {problem}: where the parser service is. Example: {name}={example}")


def check_document_intelligence(endpoint: str | None, key: str | None) -> None:
    """
    Raises:
        ValueError: no address, or one to which a key or token would go in the clear. Loopback may have a key.
    """
    name = "DOCUMENT_INTELLIGENCE_ENDPOINT"
    check_address(name, endpoint, "https://NAME.cognitiveservices.azure.com")
    parts = urlsplit(endpoint or "")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise ValueError(f"{name} must be https: a key or token goes with each request.")
    if parts.scheme == "http" and not key:
        raise ValueError(
            f"DOCUMENT_INTELLIGENCE_KEY is missing: {name} is not https, and tokens go over https only."
        )


def check_web_search(address: str) -> None:
    """
    Raises:
        ValueError: no address, or one to which questions would go in the clear.
    """
    parts = urlsplit(address)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not is_safe or not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError(
            "WEB_SEARCH_URL is not an https address: questions are sent there. "
            "Example: WEB_SEARCH_URL=https://NAME/search"
        )


def check_graph(address: str) -> None:
    """
    Raises:
        ValueError: no bare https address: our token goes there.
    """
    parts = urlsplit(address)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    is_bare = parts.path in ("", "/") and not parts.query and not parts.fragment and "@" not in parts.netloc
    if not is_safe or not is_bare or not parts.hostname:
        raise ValueError(
            "GRAPH_ENDPOINT is not an https address without path: the app's token is sent there. "
            "Example: GRAPH_ENDPOINT=https://graph.microsoft.com"
        )


def _example(field: FieldInfo) -> str:
    """A value that is taken: the field's own example, or its default; "" when it has neither."""
    given = field.examples[0] if field.examples else field.default
    if isinstance(given, bool):
        return str(given).lower()
    return str(given) if isinstance(given, str | int | float) else ""


def check_public_address(address: str) -> None:
    """
    Raises:
        ValueError: no bare address that people can follow safely.
    """
    parts = urlsplit(address)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    is_bare = parts.path in ("", "/") and not parts.query and not parts.fragment and "@" not in parts.netloc
    if not is_safe or not is_bare or not parts.hostname:
        raise ValueError(
            "PUBLIC_URL is not an https address without path: links in chats lead there. "
            "Example: PUBLIC_URL=https://groundwork.contoso.com"
        )


def explain(fields: Mapping[str, FieldInfo], location: str, message: str) -> str:
    """What is wrong with one variable: its name, what it is for, an example."""
    for name, field in fields.items():
        if location.lower() in (name, (field.alias or name).lower()):
            variable = field.alias or name.upper()
            example = f" Example: {variable}={_example(field)}" if _example(field) else ""
            return f"{variable}: {message}. {field.description}{example}"
    return message.removeprefix("Value error, ")
