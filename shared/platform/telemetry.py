"""Structured logging: JSON lines with an event name `noun.verb` and documented fields
(docs/logs-and-traces.md).

A processor redacts anything that looks like a token, key or signature, hashes user ids and truncates queries,
so that callers need not. Document text is never logged. structlog is imported with the first logger, not at
start.
"""

import hashlib
import logging
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

from shared.platform.loading import load, load_module

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

LOGGER_NAME = "groundwork"
MAX_QUERY_CHARS = 100
REDACTED = "[redacted]"
LogSource = Callable[[], Mapping[str, str]]
_log_scope: ContextVar[dict[str, str] | None] = ContextVar("log_scope", default=None)
_log_sources: list[LogSource] = []
_usage_listener: ContextVar[Callable[[int], None] | None] = ContextVar("usage_listener", default=None)

_SECRET_FIELDS = frozenset(  # with underscores for hyphens
    {"api_key", "authorization", "connection_string", "credential", "password", "secret", "sas", "token"}
    | {"x_functions_key", "x_ms_client_principal"}
)
_IS = r"""\\?["']?\s*[:=]\s*\\?["']?"""  # between a name and its value, as in headers, JSON and Python's repr
_SECRETS = (
    # In a URL inside another one, = is %3D and & is %26.
    re.compile(
        r"(?i)(?:\b|(?<=%26)|(?<=%3F))(sig|AccountKey|SharedAccessKey|SharedAccessSignature)"
        r"(?:=|%3D)[^\s;&\"']+"
    ),
    re.compile(r"(?i)(?<=[?&])(code)=[^\s;&\"']+"),  # a function's key
    re.compile(r"(?i)\b(Bearer|SharedKey)\s+[\w.~+/:=-]{8,}"),
    re.compile(rf"(?i)\b(authorization){_IS}(?:Basic\s+)?[^\s;,&\"']+"),
    # Without the header's name, the value must look like base64, unlike "Basic understanding".
    re.compile(r"\b([Bb]asic)\s+(?=[A-Za-z+/]*[\d=])[\w+/]{8,}={0,2}"),
    re.compile(
        rf"(?i)\b(api[-_]?key|client_secret|password|x-functions-key|x-ms-client-principal){_IS}[^\s;,&\"'\\]+"
    ),
    re.compile(r"()\beyJ[\w-]{8,2000}\.[\w-]+\.[\w-]*"),  # a JWT: '{"' in base64url, three parts
    re.compile(r"()\bsk-[\w-]{12,}"),  # OpenAI's keys
)
# They log each request's URL at INFO: noise, and a URL can contain a signature.
_CHATTY_LOGGERS = ("azure.core", "azure.identity", "azure.storage", "openai", "httpx", "httpx2", "httpcore")
# Logs conversation ids at INFO, and a whole message as an error if it isn't an activity.
_TALKATIVE_LOGGER = "microsoft_agents"


def get_logger(*, silent: bool = False) -> "FilteringBoundLogger":
    """Return the application's logger; a silent one while an orchestrator replays."""
    _configure()
    structlog = load_module("structlog")
    if silent:
        dropping: FilteringBoundLogger = structlog.wrap_logger(None, processors=[_drop])
        return dropping
    logger: FilteringBoundLogger = structlog.get_logger()
    return logger


@contextmanager
def log_scope(**fields: str) -> Iterator[dict[str, str]]:
    """Add `fields` to every line logged inside, for a request, activity or tool call.

    Fields added later by `note_fields` are included, also in tasks started in between.
    """
    additions = {name: value for name, value in fields.items() if value}
    token = _log_scope.set({**(_log_scope.get() or {}), **additions})
    try:
        yield _log_scope.get() or {}
    finally:
        _log_scope.reset(token)


def note_fields(**fields: str) -> None:
    """Add fields to the enclosing scope from now on."""
    scope = _log_scope.get()
    if scope is not None:
        scope.update({name: value for name, value in fields.items() if value})


def add_log_source(source: LogSource) -> None:
    """Add the fields that `source` returns to every line from now on."""
    if source not in _log_sources:
        _log_sources.append(source)


@contextmanager
def usage_told_to(listener: Callable[[int], None]) -> Iterator[None]:
    """Call `listener` with the tokens of each model call that ends inside. Only the innermost listener is
    called.
    """
    before = _usage_listener.get()
    _usage_listener.set(listener)
    try:
        yield
    finally:
        _usage_listener.set(before)  # not with the token: a generator may be closed in another context


def tell_usage(tokens: int) -> None:
    """Report a model call's tokens to the listener."""
    listener = _usage_listener.get()
    if listener is not None:
        listener(tokens)


def pseudonym(user_id: str) -> str:
    """Return a user's stable pseudonym for log lines."""
    return hashlib.sha256(f"groundwork user {user_id}".encode()).hexdigest()[:16]


def redact(text: str) -> str:
    """Replace everything in `text` that looks like a secret."""
    for secret in _SECRETS:
        text = secret.sub(lambda match: f"{match[1]}={REDACTED}" if match[1] else REDACTED, text)
    return text


def protect(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Remove personal data and secrets from an event (a structlog processor)."""
    if event.get("user_id"):
        event["user_id"] = pseudonym(str(event["user_id"]))
    if isinstance(event.get("search_query"), str):
        event["search_query"] = event["search_query"][:MAX_QUERY_CHARS]
    return _without_secrets(event)


@cache
def _configure() -> None:
    """Route events through the standard library's logging, which the Functions worker forwards."""
    structlog = load_module("structlog")
    for name in _CHATTY_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger(_TALKATIVE_LOGGER).setLevel(logging.CRITICAL)
    output = logging.getLogger(LOGGER_NAME)
    if output.level == logging.NOTSET:
        output.setLevel(logging.INFO)
    structlog.configure(
        processors=[
            _scoped,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            protect,
            structlog.processors.JSONRenderer(ensure_ascii=False, default=str),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=lambda *_: output,
        cache_logger_on_first_use=True,
    )


def _scoped(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add the fields of the request or activity; the event's own fields take precedence."""
    for fields in (_log_scope.get() or {}, *(source() for source in _log_sources)):
        for name, value in fields.items():
            event.setdefault(name, value)
    return event


def _without_secrets(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: REDACTED if str(name).lower().replace("-", "_") in _SECRET_FIELDS else _redacted(value)
        for name, value in fields.items()
    }


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return _without_secrets(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted(inner) for inner in value]
    return value


def _drop(_logger: object, _method: str, _event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    raise load("structlog", "DropEvent")
