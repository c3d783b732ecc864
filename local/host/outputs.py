"""Writes what functions put into output bindings: queue messages and blobs."""

import base64
import json
import re
import uuid
from collections.abc import Mapping

from azure.functions.meta import Datum

from local.host.catalogue import BindingDocument
from local.host.storage import StorageClients

EXPRESSION = re.compile(r"\{([^{}]+)\}")


def fill_expressions(template: str, values: Mapping[str, str]) -> str:
    """Replace `{name}` by the trigger's value of that name, and `{rand-guid}` by a new id.

    Raises:
        ValueError: the trigger offers no such value.
    """

    def value(matched: re.Match[str]) -> str:
        name = matched.group(1)
        if name == "rand-guid":
            return str(uuid.uuid4())
        if name not in values:
            raise ValueError(f"the trigger has no value {{{name}}} for {template!r}")
        return values[name]

    return EXPRESSION.sub(value, template)


class OutputWriter:
    """Writes one output binding's value after the function returned."""

    def __init__(self, storage: StorageClients, *, base64_messages: bool) -> None:
        self._storage = storage
        self._base64 = base64_messages

    async def write(self, binding: BindingDocument, datum: Datum, values: Mapping[str, str]) -> None:
        """Send the value; `values` fill the binding's `{expressions}`.

        Raises:
            ValueError: an expression without a value.
            azure.core.exceptions.AzureError: storage refused it.
        """
        if binding["type"] == "queue":
            await self._send(binding, datum)
        else:
            await self._upload(binding, datum, values)

    async def _send(self, binding: BindingDocument, datum: Datum) -> None:
        queue = self._storage.queue(binding.get("connection"), self._storage.resolve(binding["queueName"]))
        for text in _message_texts(datum):
            await self._storage.send(
                queue, base64.b64encode(text.encode()).decode() if self._base64 else text
            )

    async def _upload(self, binding: BindingDocument, datum: Datum, values: Mapping[str, str]) -> None:
        path = fill_expressions(self._storage.resolve(binding["path"]), values)
        container, _, name = path.partition("/")
        blob = self._storage.blob(binding.get("connection"), container, name)
        await blob.upload_blob(datum.value, overwrite=True)


def _message_texts(datum: Datum) -> list[str]:
    if datum.type == "bytes":
        return [datum.value.decode()]
    if datum.type != "json":
        return [datum.value]
    # QueueMessageOutConverter writes one message as {"id", "body"}, several as a list of texts or such
    # objects.
    document = json.loads(datum.value)
    messages = document if isinstance(document, list) else [document]
    return [
        message["body"] if isinstance(message, dict) and "body" in message else _as_text(message)
        for message in messages
    ]


def _as_text(message: object) -> str:
    return message if isinstance(message, str) else json.dumps(message)
