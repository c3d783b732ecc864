"""Blob triggers: which container and names a function watches, and what it receives for a blob.

A parameter of an SDK type receives where the blob lies; InputStream, bytes and str receive its content, all
of it in memory, as from the real host.
"""

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass

from azure.core.exceptions import ResourceNotFoundError
from azure.functions.meta import Datum
from azure.storage.blob import BlobProperties

from local.host.catalogue import HostedFunction
from local.host.conversion import BlobModelBindingData, json_datum, text_datum
from local.host.errors import AppError
from local.host.invocation import Invoker
from local.host.settings import DEFAULT_STORAGE
from local.host.storage import StorageClients

LARGE_BLOB_BYTES = 16 * 1024 * 1024
EXPRESSION = re.compile(r"\{(\w+)\}")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BlobTrigger:
    """One blob-triggered function and what it watches."""

    function: HostedFunction
    connection: str
    container: str
    pattern: re.Pattern[str]

    @property
    def place(self) -> str:
        """connection/container: the key of its receipts."""
        return f"{self.connection}/{self.container}"

    def values(self, blob_name: str) -> dict[str, str] | None:
        """The path's `{expressions}` for a blob, or None if the name does not fit the path."""
        matched = self.pattern.fullmatch(blob_name)
        return None if matched is None else matched.groupdict()


def blob_triggers(functions: Iterable[HostedFunction], storage: StorageClients) -> list[BlobTrigger]:
    """The blob triggers of an app.

    Raises:
        AppError: a trigger without source EventGrid, which Flex Consumption does not run, or a wrong path.
        SettingError: a %SETTING% of a path, or the connection, is not set.
    """
    triggers = []
    for function in functions:
        if function.kind == "blobTrigger":
            if function.trigger.get("source") != "EventGrid":
                raise AppError(
                    f"function {function.name}: Flex Consumption runs blob triggers of source EventGrid only"
                )
            connection = function.trigger.get("connection") or DEFAULT_STORAGE
            container, pattern = compile_blob_path(storage.resolve(function.trigger["path"]))
            storage.container(
                connection, container
            )  # a missing connection is an error now, not at the first blob
            triggers.append(BlobTrigger(function, connection, container, pattern))
    return triggers


def compile_blob_path(path: str) -> tuple[str, re.Pattern[str]]:
    """Container and name pattern of a path such as `documents/{name}` or `in/{folder}/{name}.pdf`.

    Raises:
        AppError: no container, or an expression in the container's place.
    """
    container, _, name = path.partition("/")
    if not container or "{" in container:
        raise AppError(f"blob path {path!r} must begin with a container's name")
    pattern, end = "", 0
    for matched in EXPRESSION.finditer(name):
        pattern += re.escape(name[end : matched.start()]) + f"(?P<{matched.group(1)}>.+)"
        end = matched.end()
    pattern += re.escape(name[end:])
    return container, re.compile(pattern or ".+", re.DOTALL)


class BlobInvoker:
    """Calls a blob-triggered function for one blob."""

    def __init__(self, storage: StorageClients, invoker: Invoker) -> None:
        self._storage = storage
        self._invoker = invoker

    async def run(self, trigger: BlobTrigger, blob_name: str) -> None:
        """Call the function; a blob that is gone meanwhile, or that its path excludes, is no call and no
        error.

        Raises:
            Exception: whatever the function or storage raised.
        """
        values = trigger.values(blob_name)
        blob = self._storage.blob(trigger.connection, trigger.container, blob_name)
        try:
            properties = await blob.get_blob_properties()
            if values is None:
                return
            datum = await self._datum(trigger, blob_name, properties)
        except ResourceNotFoundError:
            return
        metadata = _metadata(trigger, blob_name, blob.url, properties)
        values = {**values, "BlobTrigger": f"{trigger.container}/{blob_name}"}
        await self._invoker.run(trigger.function, datum, metadata, values)

    async def _datum(self, trigger: BlobTrigger, blob_name: str, properties: BlobProperties) -> Datum:
        if trigger.function.trigger_parameter.deferred:
            place = BlobModelBindingData.of(trigger.connection, trigger.container, blob_name)
            return Datum(type="model_binding_data", value=place)
        if properties.size > LARGE_BLOB_BYTES:
            log.warning(
                "function %s reads %s into memory whole (%d bytes); an SDK type would receive its place only",
                trigger.function.name, blob_name, properties.size,
            )  # fmt: skip
        blob = self._storage.blob(trigger.connection, trigger.container, blob_name)
        content = await (await blob.download_blob()).readall()
        if trigger.function.trigger_parameter.annotation is str:
            return text_datum(content.decode("utf-8"))
        return Datum(type="bytes", value=content)


def _metadata(trigger: BlobTrigger, blob_name: str, url: str, properties: BlobProperties) -> dict[str, Datum]:
    document = {
        "ContentLength": properties.size,
        "ContentType": properties.content_settings.content_type,
        "ETag": str(properties.etag).strip('"'),
        "LastModified": properties.last_modified.isoformat(),
    }
    return {
        "BlobTrigger": text_datum(f"{trigger.container}/{blob_name}"),
        "Uri": json_datum(url),
        "Properties": json_datum(document),
        "Metadata": json_datum(dict(properties.metadata or {})),
    }
