"""A blob trigger's argument that says where the blob is and carries none of its content.

InputStream, bytes and str would bring the whole file into the worker's memory before the function begins. The
worker hands an SDK type's converter the blob's place instead; this is the smallest such type, and imports no
SDK.
Source: azurefunctions-extensions-base; ModelBindingData of the Functions host, source AzureStorageBlobs.
"""

import json
from typing import Any

from azurefunctions.extensions.base import Datum, InConverter, SdkType


class BlobReference(SdkType):  # type: ignore[misc]  # the package has no types
    """Where a blob is."""

    def __init__(self, *, container: str, name: str) -> None:
        super().__init__(data={"ContainerName": container, "BlobName": name})
        self.container = container
        self.name = name

    def get_sdk_type(self) -> "BlobReference":
        """Itself: it is no wrapper around a client."""
        return self


class BlobReferenceConverter(InConverter, binding="blob", trigger="blobTrigger"):  # type: ignore[misc, call-arg]
    """Makes a BlobReference of what the host sends."""

    @classmethod
    def check_input_type_annotation(cls, pytype: type) -> bool:
        """Whether this converter serves a parameter so annotated."""
        return issubclass(pytype, BlobReference)

    @classmethod
    def has_implicit_output(cls) -> bool:
        """A blob trigger returns nothing."""
        return False

    @classmethod
    def decode(cls, data: Datum, *, trigger_metadata: object, pytype: type) -> BlobReference:
        """The blob's place.

        Raises:
            ValueError: the host sent something else than a place.
        """
        del trigger_metadata, pytype
        if data is None or data.type != "model_binding_data":
            raise ValueError(f"expected the place of a blob, got {data.type if data else None}")
        place: dict[str, Any] = json.loads(data.value.content)
        return BlobReference(container=str(place["ContainerName"]), name=str(place["BlobName"]))
