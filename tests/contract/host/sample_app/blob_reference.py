"""A parameter type for blob triggers that contains the blob's location but not its content.

It is a custom SDK type ("deferred binding"), registered in the same way as the BlobClient of
azurefunctions-extensions-bindings-blob: the host sends model_binding_data and never reads the blob.
"""

import json
from typing import Any

from azurefunctions.extensions.base import Datum, InConverter, SdkType


class BlobReference(SdkType):  # type: ignore[misc]  # the extension is untyped
    """The connection setting, container and name of a blob."""

    def __init__(self, *, data: Any) -> None:
        place = json.loads(data.content)
        self.connection: str = place["Connection"]
        self.container: str = place["ContainerName"]
        self.name: str = place["BlobName"]

    def get_sdk_type(self) -> "BlobReference":
        return self


class BlobReferenceConverter(InConverter, binding="blob", trigger="blobTrigger"):  # type: ignore[misc,call-arg]
    """A converter that creates a BlobReference from the host's model_binding_data."""

    @classmethod
    def check_input_type_annotation(cls, pytype: type) -> bool:
        return issubclass(pytype, BlobReference)

    @classmethod
    def has_implicit_output(cls) -> bool:
        return False

    @classmethod
    def decode(cls, data: Datum, *, trigger_metadata: Any, pytype: Any) -> BlobReference:
        if data.type != "model_binding_data":
            raise ValueError(f"a blob reference needs model_binding_data, not {data.type}")
        return BlobReference(data=data.value)
