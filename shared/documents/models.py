"""Models of a document's content (elements, figures, chunks and blocks) and of the ingestion data stored with
it.
"""

from typing import Literal

from pydantic import Field

from shared.platform.models import Model
from shared.retrieval.models import BlockType, DocumentMetadata

ElementKind = Literal["heading", "paragraph", "list_item", "table", "code", "figure"]


class Picture(Model):
    """A picture that a parser extracted and wrote to its work folder as `{key}.png`.

    Attributes:
        key: SHA-256 of the PNG, as hex.
        words: words in the picture, if known; also part of the document's text.
    """

    key: str
    width_px: int
    height_px: int
    words: str = ""


class Element(Model):
    """A structural element of a parsed document, such as a heading, paragraph or table.

    Attributes:
        kind: a table's text is a Markdown table, header row first.
        text: plain text with collapsed white space and joined lines. For a figure, its name, such as "Figure
            3: Flow" or alternative text; words in the figure are separate elements.
        page_number: 1-based; None for formats without pages.
        level: 1-6 for headings, otherwise None.
        start_seconds: offset in the recording, for transcripts.
        cues: times of its words (shared/evidence/cues.py).
        picture: of a figure; None if it could not be extracted.
    """

    kind: ElementKind
    text: str
    page_number: int | None = None
    level: int | None = None
    start_seconds: float | None = None
    cues: str | None = None
    picture: Picture | None = None


class ParsedDocument(Model):
    """The result of parsing a file.

    Attributes:
        elements: elements in reading order.
        page_count: pages, slides or sheets; None for formats without them.
        title, author: from the file's properties; None if missing or meaningless.
        date: day on which an e-mail was sent, in ISO 8601, at the sender's place; None for other formats.
        unreadable_pages: number of pages without readable text.
        warnings: sentences for users, such as "Pages 3-5 hold no text (scanned?)".
    """

    elements: tuple[Element, ...]
    page_count: int | None = None
    unreadable_pages: int = 0
    title: str | None = None
    author: str | None = None
    date: str | None = None
    warnings: tuple[str, ...] = ()


class Chunk(Model):
    """A piece of a document's text that is small enough to embed.

    Attributes:
        text: the text that is indexed, shown and quoted.
        place: index of the element where it starts, from 0.
        heading_path: "3 Safety > 3.2 Valves"; empty if there is none.
        kind: a "table" is a whole table, or rows with their header; a "card" describes a table that SQL can
            query.
    """

    text: str
    place: int = 0
    heading_path: str = ""
    page_number: int | None = None
    start_seconds: float | None = None
    cues: str | None = None
    kind: Literal["text", "table", "card"] = "text"


class Figure(Model):
    """Figure that is indexed as a separate block. Its PNG is stored under its key.

    Attributes:
        label: name of the figure in the document; empty if it has none.
        context: text before and after the figure.
        words: words in it, if known.
        place: index among the document's elements, from 0.
    """

    key: str
    place: int = 0
    label: str = ""
    context: str = ""
    words: str = ""
    heading_path: str = ""
    page_number: int | None = None
    width_px: int
    height_px: int


class Caption(Model):
    """Caption of a figure. `by_model` is False if a rule derived it from the surrounding text."""

    text: str
    by_model: bool


class Block(Model):
    """A block as stored in the `content-blocks` index, without its vector and the fields copied from the
    document.

    Attributes:
        block_id: derived from doc_id, content and occurrence, so unchanged blocks keep their id.
        ordinal: position in reading order, text and figures together, from 0.
        content_hash: SHA-256 of everything whose change requires an index write, as hex.
    """

    block_id: str
    doc_id: str
    block_type: BlockType = "text"
    page_number: int | None = None
    ordinal: int = 0
    start_seconds: float | None = None
    cues: str | None = None
    heading_path: str = ""
    content: str = ""
    image_url: str | None = None
    image_caption: str | None = None
    content_hash: str


Corrections = dict[str, str | tuple[str, ...] | None]
"""Fields of a document's metadata as a person set them; None = left empty on purpose."""


class DescribedFile(DocumentMetadata):
    """The metadata of a document version, before corrections by users.

    Attributes:
        by_model: False if rules derived it.
        described_as: the file name given to the model.
    """

    by_model: bool = True
    described_as: str = ""


class Manifest(Model):
    """List of the blocks that an ingestion may write for a version. It is stored before the first block, so
    that blocks of an interrupted ingestion can be found and deleted.

    Attributes:
        block_ids: ids of the blocks of the version; during ingestion, of blocks that may be written.
        other_ids: blocks to delete when the version becomes current: blocks of other versions found in the
            index, and blocks that were possibly written but aren't used.
        described: the metadata, so that repairs and copies need no model call. None = ask the model again.
    """

    block_ids: tuple[str, ...]
    other_ids: tuple[str, ...] = ()
    described: DescribedFile | None = None


class Original(Model):
    """Document whose results may be reused because another document is a copy of it. `doc_id` is None if
    there is none.

    Attributes:
        folder: folder of the original's version.
        corrections: the original's corrections if it has the same owner; adopted if its file was deleted.
    """

    doc_id: str | None = None
    blob_name: str = ""
    folder: str = ""
    corrections: Corrections = Field(default_factory=dict)
