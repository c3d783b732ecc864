"""Settings of the host: host.json, local.settings.json, %SETTING% references and storage connections.

As with `func start`, app settings come from the environment, and local.settings.json supplies missing ones.
Options in host.json that have no local effect are ignored.
"""

import json
import logging
import os
import re
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class HostError(Exception):
    """Error raised if the host cannot start. Its message is printed in one line, without a traceback."""


class AppError(HostError):
    """Error raised if the function app cannot be loaded, or has a binding that the worker rejects."""


class SettingError(HostError):
    """Error raised if a setting is missing or invalid."""


class PortBusyError(HostError):
    """Error raised if another process listens on the port."""


DEFAULT_STORAGE = "AzureWebJobsStorage"
DEFAULT_FUNCTION_TIMEOUT_S = 30 * 60.0  # same default as in the Flex Consumption plan
DEFAULT_VISIBILITY_S = 300.0  # time after which Durable Functions redelivers the messages of a dead host
DEFAULT_LEASE_S = 30.0  # lease of a Durable Functions partition; fixed in the real host
LEASE_SETTING = "LOCAL_HOST_LEASE_S"
BODY_SETTING = "FUNCTIONS_REQUEST_BODY_SIZE_LIMIT"
DEFAULT_BODY_BYTES = 104_857_600  # same default as in the real host
OVERRIDE_PREFIX = "AzureFunctionsJobHost__"
SETTING_REFERENCE = re.compile(r"%([^%]+)%")
TIMESPAN = re.compile(r"^(?:(\d+)\.)?(\d{1,2}):(\d{2}):(\d{2}(?:\.\d+)?)$")


@dataclass(frozen=True)
class QueueOptions:
    """The options in `extensions.queues` of host.json."""

    max_dequeue_count: int = 5
    max_polling_interval_s: float = 1.0  # the default of 60 s in the real host is too slow for development


@dataclass(frozen=True)
class HostOptions:
    """The options in host.json that this host supports, with related settings."""

    route_prefix: str = "api"
    function_timeout_s: float | None = DEFAULT_FUNCTION_TIMEOUT_S
    queues: QueueOptions = field(default_factory=QueueOptions)
    task_hub: str = "local"
    work_item_visibility_s: float = DEFAULT_VISIBILITY_S
    control_visibility_s: float = DEFAULT_VISIBILITY_S
    lease_s: float = DEFAULT_LEASE_S
    max_parallel_activities: int = 16  # the default in the real host is 10 per core
    max_body_bytes: int = DEFAULT_BODY_BYTES  # maximum size of a request body


def parse_timespan(text: str) -> float:
    """Return the seconds in a .NET TimeSpan of the form `hh:mm:ss` or `d.hh:mm:ss`.

    Raises:
        SettingError: if the text has a different form.
    """
    matched = TIMESPAN.match(text)
    if matched is None:
        raise SettingError(f"host.json: {text!r} is not a time span such as 00:00:30")
    days, hours, minutes, seconds = matched.groups()
    return int(days or 0) * 86400 + int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def read_host_options(folder: Path, environment: Mapping[str, str] = os.environ) -> HostOptions:
    """Read host.json from `folder`. Missing options have default values.

    Args:
        environment: `AzureFunctionsJobHost__a__b` replaces the value `b` of the section `a`.

    Raises:
        SettingError: if the file isn't JSON or a time span is invalid.
    """
    document = _overridden(_read_json(folder / "host.json"), environment)
    extensions = document.get("extensions", {})
    queues, durable = extensions.get("queues", {}), extensions.get("durableTask", {})
    storage = durable.get("storageProvider", {})
    return HostOptions(
        route_prefix=extensions.get("http", {}).get("routePrefix", "api").strip("/"),
        function_timeout_s=_function_timeout(document.get("functionTimeout")),
        queues=QueueOptions(
            max_dequeue_count=int(queues.get("maxDequeueCount", 5)),
            max_polling_interval_s=_span(queues, "maxPollingInterval", 1.0),
        ),
        task_hub=durable.get("hubName", "local"),
        work_item_visibility_s=_span(storage, "workItemQueueVisibilityTimeout", DEFAULT_VISIBILITY_S),
        control_visibility_s=_span(storage, "controlQueueVisibilityTimeout", DEFAULT_VISIBILITY_S),
        lease_s=float(environment.get(LEASE_SETTING, DEFAULT_LEASE_S)),
        max_parallel_activities=int(durable.get("maxConcurrentActivityFunctions", 16)),
        max_body_bytes=int(environment.get(BODY_SETTING, DEFAULT_BODY_BYTES)),
    )


def _overridden(document: dict[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    for name, text in environment.items():
        if name.startswith(OVERRIDE_PREFIX):
            *sections, last = name.removeprefix(OVERRIDE_PREFIX).split("__")
            place = document
            for section in sections:
                place = place.setdefault(section, {})
            place[last] = text
    return document


def _span(section: Mapping[str, object], name: str, default_s: float) -> float:
    return parse_timespan(str(section[name])) if name in section else default_s


def _function_timeout(text: str | None) -> float | None:
    if text is None:
        return DEFAULT_FUNCTION_TIMEOUT_S
    return None if text == "-1" else parse_timespan(text)


def fill_environment(folder: Path, environment: MutableMapping[str, str]) -> None:
    """Add the `Values` in local.settings.json to the environment. Existing variables take precedence."""
    for name, value in _read_json(folder / "local.settings.json").get("Values", {}).items():
        environment.setdefault(name, str(value))


def locate(app: str) -> tuple[Path, str]:
    """Return the folder and the module name for the argument `--app`: a module in the current folder, or the
    path of a .py file.
    """
    path = Path(app)
    if path.suffix == ".py":
        return path.resolve().parent, path.stem
    return Path.cwd(), app


def set_up_logging() -> None:
    """Configure logging to stderr. Used by host and worker."""
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    for name in ("azure", "uvicorn", "httpx"):
        logging.getLogger(name).setLevel(logging.WARNING)


def resolve_references(text: str, environment: Mapping[str, str]) -> str:
    """Replace each `%NAME%` in a path, queue name or schedule with the value of the setting NAME.

    Raises:
        SettingError: if the setting is missing.
    """

    def setting(matched: re.Match[str]) -> str:
        name = matched.group(1)
        if name not in environment:
            raise SettingError(f"setting {name} is not set; {text!r} refers to it")
        return environment[name]

    return SETTING_REFERENCE.sub(setting, text)


def storage_connection(name: str | None, environment: Mapping[str, str]) -> str:
    """Return the storage connection string for a connection named by a binding. None means
    AzureWebJobsStorage.

    The real host looks for `AzureWebJobs<name>` before `<name>`.

    Raises:
        SettingError: if neither setting exists.
    """
    connection = name or DEFAULT_STORAGE
    for candidate in (f"AzureWebJobs{connection}", connection):
        if environment.get(candidate):
            return environment[candidate]
    raise SettingError(
        f"setting {connection} is not set; it must contain the storage connection string of a binding"
    )


def is_disabled(function_name: str, environment: Mapping[str, str]) -> bool:
    """Return whether the setting `AzureWebJobs.<function>.Disabled` is true."""
    return environment.get(f"AzureWebJobs.{function_name}.Disabled", "").lower() in {"true", "1"}


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SettingError(f"{path.name} is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise SettingError(f"{path.name} must contain a JSON object")
    return document
