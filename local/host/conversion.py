"""Converts between wire values (Datum) and function arguments, with the converters of the real worker.

The converters are azure-functions' own registry, and the registry of azurefunctions.extensions.base for SDK
types ("deferred bindings"). Only the generic converter, which lives in the worker itself, is written here.
"""

import json
from dataclasses import dataclass
from typing import Any, Protocol

import azure.functions.meta as function_meta
import azurefunctions.extensions.base as extension_base
from azure.functions.meta import Datum

from local.host.wire import Value

DEFERRED_SOURCE = "AzureStorageBlobs"


class Converter(Protocol):
    """The interface of the converters that azure-functions and its extensions register."""

    def check_input_type_annotation(self, pytype: type) -> bool: ...
    def check_output_type_annotation(self, pytype: type) -> bool: ...
    def has_implicit_output(self) -> bool: ...
    def encode(self, obj: Any, *, expected_type: type | None) -> Datum: ...
    def decode(self, data: Datum, *, trigger_metadata: dict[str, Datum], **deferred: Any) -> Any: ...


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function, or its return value, with its binding.

    `binding_type` selects the converter: the binding's own type, or "generic" if the annotation is str or
    bytes.
    """

    name: str
    binding_type: str
    annotation: Any = None
    deferred: bool = False


@dataclass(frozen=True)
class BlobModelBindingData:
    """The wire value of a blob bound to an SDK type: its connection, container and name, without its
    content.
    """

    content: bytes
    version: str = "1.0"
    source: str = DEFERRED_SOURCE
    content_type: str = "application/json"


class GenericConverter:
    """Converter for binding types without a registered converter, and for parameters annotated str or
    bytes.
    """

    @classmethod
    def check_input_type_annotation(cls, pytype: type) -> bool:
        return issubclass(pytype, (str, bytes))

    @classmethod
    def check_output_type_annotation(cls, pytype: type) -> bool:
        return issubclass(pytype, (str, bytes, bytearray))

    @classmethod
    def has_implicit_output(cls) -> bool:
        return False

    @classmethod
    def encode(cls, obj: Any, *, expected_type: type | None) -> Datum:
        del expected_type
        if isinstance(obj, str):
            return Datum(type="string", value=obj)
        if isinstance(obj, (bytes, bytearray)):
            return Datum(type="bytes", value=bytes(obj))
        return Datum(type="json", value=json.dumps(obj))

    @classmethod
    def decode(cls, data: Datum, *, trigger_metadata: dict[str, Datum], **deferred: Any) -> Any:
        del trigger_metadata, deferred
        return data.value


def converter_for(binding_type: str, *, deferred: bool = False) -> Converter:
    """Return the converter registered for a binding type, or the generic one."""
    converter: Converter | None = _registry(deferred=deferred).get(binding_type)
    return GenericConverter() if converter is None else converter


def _registry(*, deferred: bool) -> Any:
    library: Any = extension_base if deferred else function_meta
    return library.get_binding_registry()


def is_sdk_type(annotation: object) -> bool:
    """Return whether the annotation is an SDK type, such as BlobClient. azure-functions calls such bindings
    deferred.
    """
    return bool(_registry(deferred=True).check_supported_type(annotation))


def datum_of(value: Value) -> Datum:
    """Return a wire value as the Datum that converters accept."""
    content = value.content
    if value.type == "model_binding_data" and isinstance(content, bytes):
        return Datum(type=value.type, value=BlobModelBindingData(content))
    return Datum(type=value.type, value=content)


def decode(parameter: Parameter, datum: Datum, metadata: dict[str, Datum]) -> Any:
    """Convert a wire value to a function argument.

    Raises:
        ValueError, NotImplementedError: the converter rejects the value.
    """
    converter = converter_for(parameter.binding_type, deferred=parameter.deferred)
    if parameter.deferred:
        return converter.decode(datum, trigger_metadata=metadata, pytype=parameter.annotation)
    return converter.decode(datum, trigger_metadata=metadata)


def encode(parameter: Parameter, value: object) -> Datum:
    """Convert a return value of a function to a wire value.

    Raises:
        ValueError, NotImplementedError: the converter rejects the value.
    """
    annotation = parameter.annotation if isinstance(parameter.annotation, type) else None
    return converter_for(parameter.binding_type).encode(value, expected_type=annotation)
