"""What is kept of a document in the work container beside its text: descriptions, and what it copies."""

from pydantic import Field

from shared.models.base import Model
from shared.models.documents import DocumentMetadata
from shared.models.ingestion import Corrections


class DescribedFile(DocumentMetadata):
    """A document's metadata in the work container. `by_model` is false when rules made them."""

    by_model: bool = True


class ExtractedFile(Model):
    """What the model said of a document whose rows are in the indexes, before any correction by people.

    Attributes:
        content_hash, pipeline: of the version that was described.
        filename: that the model was told.
    """

    content_hash: str
    pipeline: str
    filename: str
    metadata: DocumentMetadata


class Original(Model):
    """The document that another one is a copy of, as long as an ingestion lasts; None = of no other.

    Attributes:
        corrections: of the original, if its owner is the copy's: they move along if its file is gone.
    """

    doc_id: str | None = None
    blob_name: str = ""
    corrections: Corrections = Field(default_factory=dict)
