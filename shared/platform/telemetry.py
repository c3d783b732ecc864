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

# Fields with these names are redacted; hyphens in names are replaced by underscores first.
_SECRET_FIELDS = frozenset(
    {"api_key", "authorization", "connection_string", "credential", "password", "secret", "sas", "token"}
    | {"x_functions_key", "x_ms_client_principal"}
)
# Matches the separator between a name and its value in headers, JSON and Python reprs.
_IS = r"""\\?["']?\s*[:=]\s*\\?["']?"""
_SECRETS = (
    # In a URL that is embedded in another URL, `=` is encoded as `%3D` and `&` as `%26`.
    re.compile(
        r"(?i)(?:\b|(?<=%26)|(?<=%3F))(sig|AccountKey|SharedAccessKey|SharedAccessSignature)"
        r"(?:=|%3D)[^\s;&\"']+"
    ),
    re.compile(r"(?i)(?<=[?&])(code)=[^\s;&\"']+"),  # the access key in the URL of an Azure function
    re.compile(r"(?i)\b(Bearer|SharedKey)\s+[\w.~+/:=-]{8,}"),
    re.compile(rf"(?i)\b(authorization){_IS}(?:Basic\s+)?[^\s;,&\"']+"),
    # Credentials without the header name are matched only if they look like base64, so that "Basic
    # understanding" is kept.
    re.compile(r"\b([Bb]asic)\s+(?=[A-Za-z+/]*[\d=])[\w+/]{8,}={0,2}"),
    re.compile(
        rf"(?i)\b(api[-_]?key|client_secret|password|x-functions-key|x-ms-client-principal){_IS}[^\s;,&\"'\\]+"
    ),
    re.compile(r"()\beyJ[\w-]{8,2000}\.[\w-]+\.[\w-]*"),  # a JWT: '{"' in base64url, three parts
    re.compile(r"()\bsk-[\w-]{12,}"),  # OpenAI's keys
)
# These loggers log the URL of each request at INFO, and a URL may contain a signature.
_CHATTY_LOGGERS = ("azure.core", "azure.identity", "azure.storage", "openai", "httpx", "httpx2", "httpcore")
# This logger logs conversation ids at INFO, and whole messages if they are malformed.
_TALKATIVE_LOGGER = "microsoft_agents"


def get_logger(*, silent: bool = False) -> "FilteringBoundLogger":
    """Return the app's logger. A silent logger drops all events, as needed during orchestrator replay."""
    _configure()
    structlog = load_module("structlog")
    if silent:
        dropping: FilteringBoundLogger = structlog.wrap_logger(None, processors=[_drop])
        return dropping
    logger: FilteringBoundLogger = structlog.get_logger()
    return logger


@contextmanager
def log_scope(**fields: str) -> Iterator[dict[str, str]]:
    """Add fields to every log line written inside the block, e.g. for a request, activity or tool call.

    Fields added later by `note_fields` are included, also in tasks started in between.
    """
    additions = {name: value for name, value in fields.items() if value}
    token = _log_scope.set({**(_log_scope.get() or {}), **additions})
    try:
        yield _log_scope.get() or {}
    finally:
        _log_scope.reset(token)


def note_fields(**fields: str) -> None:
    """Add fields to all further log lines of the enclosing `log_scope`. Without a scope this has no
    effect.
    """
    scope = _log_scope.get()
    if scope is not None:
        scope.update({name: value for name, value in fields.items() if value})


def add_log_source(source: LogSource) -> None:
    """Register a function whose fields are added to every log line."""
    if source not in _log_sources:
        _log_sources.append(source)


@contextmanager
def listen_for_usage(listener: Callable[[int], None]) -> Iterator[None]:
    """Call `listener` with the number of tokens after each model call inside the block. Nested blocks replace
    the listener.
    """
    before = _usage_listener.get()
    _usage_listener.set(listener)
    try:
        yield
    finally:
        # Restore the previous value directly instead of with a context token, because a generator may be
        # closed in a different context.
        _usage_listener.set(before)


def report_usage(tokens: int) -> None:
    """Pass the number of tokens of a model call to the current listener, if there is one."""
    listener = _usage_listener.get()
    if listener is not None:
        listener(tokens)


def pseudonym(user_id: str) -> str:
    """Return a stable pseudonym that replaces a user id in log lines."""
    return hashlib.sha256(f"groundwork user {user_id}".encode()).hexdigest()[:16]


def redact(text: str) -> str:
    """Return the text with everything that looks like a secret replaced by "[redacted]"."""
    for secret in _SECRETS:
        text = secret.sub(lambda match: f"{match[1]}={REDACTED}" if match[1] else REDACTED, text)
    return text


def protect(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Remove secrets and personal data from a log event. This is a structlog processor."""
    if event.get("user_id"):
        event["user_id"] = pseudonym(str(event["user_id"]))
    if isinstance(event.get("search_query"), str):
        event["search_query"] = event["search_query"][:MAX_QUERY_CHARS]
    return _without_secrets(event)


@cache
def _configure() -> None:
    """Configure structlog to write to the standard library's logging, which the Functions worker forwards."""
    structlog = load_module("structlog")
    for name in _CHATTY_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger(_TALKATIVE_LOGGER).setLevel(logging.CRITICAL)
    output = logging.getLogger(LOGGER_NAME)
    if output.level == logging.NOTSET:
        output.setLevel(logging.INFO)
    structlog.configure(
        processors=[
            _add_scope,
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


def _add_scope(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add the fields of the current log scope and sources to an event, without replacing its own fields."""
    for fields in (_log_scope.get() or {}, *(source() for source in _log_sources)):
        for name, value in fields.items():
            event.setdefault(name, value)
    return event


def _without_secrets(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: REDACTED if str(name).lower().replace("-", "_") in _SECRET_FIELDS else _redact(value)
        for name, value in fields.items()
    }


def _redact(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return _without_secrets(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_redact(inner) for inner in value]
    return value


def _drop(_logger: object, _method: str, _event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    raise load("structlog", "DropEvent")
