"""Pieces, figures and blocks of a document, and what its ingestion keeps in the work container."""

from typing import Literal

from pydantic import Field

from shared.platform.models import Model
from shared.retrieval.models import BlockType, DocumentMetadata

ElementKind = Literal["heading", "paragraph", "list_item", "table", "code", "figure"]


class Picture(Model):
    """A picture that a parser wrote into its work folder, as `{key}.png`.

    Attributes:
        key: sha256 hex of the PNG.
        words: the words in it, as far as they are known; they stand in the document's text, too.
    """

    key: str
    width_px: int
    height_px: int
    words: str = ""


class Element(Model):
    """One structural piece of a parsed document, in reading order.

    Attributes:
        kind: what it is; a table's text is a Markdown table, header row first.
        text: plain text, white space folded, lines of one paragraph joined. Of a figure: what names it, such
            as "Figure 3: Flow" or a picture's alternative text; words in it are elements of their own.
        page_number: 1-based; None where the format has no pages.
        level: 1-6 for headings, else None.
        start_seconds: offset in the recording, for transcripts.
        cues: when its words are said (shared/evidence/cues.py).
        picture: of a figure, what can be shown; None where it could not be extracted.
    """

    kind: ElementKind
    text: str
    page_number: int | None = None
    level: int | None = None
    start_seconds: float | None = None
    cues: str | None = None
    picture: Picture | None = None


class ParsedDocument(Model):
    """What a parser returns.

    Attributes:
        elements: in reading order.
        page_count: pages, slides or sheets; None where the format has none.
        title, author: from the file's own properties, None when absent or meaningless.
        unreadable_pages: how many of them hold text that could not be read, or nothing that could.
        warnings: sentences for people, such as "Pages 3-5 hold no text (scanned?)".
    """

    elements: tuple[Element, ...]
    page_count: int | None = None
    unreadable_pages: int = 0
    title: str | None = None
    author: str | None = None
    warnings: tuple[str, ...] = ()


class Chunk(Model):
    """A piece of text small enough to embed, before it belongs to a document's record.

    Attributes:
        text: what is indexed, shown and quoted.
        place: position among the document's elements at which it begins, from 0.
        heading_path: "3 Safety > 3.2 Valves"; empty when there is none.
        kind: "table" chunks hold a whole table, or rows of one with its header; a "card" describes one that
            can be calculated with.
    """

    text: str
    place: int = 0
    heading_path: str = ""
    page_number: int | None = None
    start_seconds: float | None = None
    cues: str | None = None
    kind: Literal["text", "table", "card"] = "text"


class Figure(Model):
    """A figure that is worth its own block; its PNG lies under its key.

    Attributes:
        label: what names it in the document; empty when nothing does.
        context: the text before and after it.
        words: the words in it, as far as they are known.
        place: position among the document's elements, from 0.
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
    """What is said of a figure. `by_model` is false when a rule made it from the text around the figure."""

    text: str
    by_model: bool


class Block(Model):
    """One row of the `content-blocks` index, without its vector and without what is copied from the document.

    Attributes:
        block_id: stable: derived from doc_id, content and its occurrence, so an unchanged block keeps its id.
        ordinal: place in the document in reading order, text and figures counted together from 0.
        content_hash: sha256 hex of everything whose change needs an index write.
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
    """A version's metadata before any correction by people.

    Attributes:
        by_model: False when rules made them.
        described_as: the file name that the model was given.
    """

    by_model: bool = True
    described_as: str = ""


class Manifest(Model):
    """What an ingestion may have written of a version; stored before its first block.

    Attributes:
        block_ids: the blocks that belong to the version; while it is being made, those that may.
        other_ids: blocks to delete when the version is the current one: what its ingestion found in the
            index, and what it may have written and not used.
        described: the metadata, so that a repair or a copy asks no model again. None = ask again.
    """

    block_ids: tuple[str, ...]
    other_ids: tuple[str, ...] = ()
    described: DescribedFile | None = None


class Original(Model):
    """The document of which another one is a copy; `doc_id` None = there is none.

    Attributes:
        folder: of the original's version.
        corrections: of the original, if its owner is the copy's: they move along if its file is gone.
    """

    doc_id: str | None = None
    blob_name: str = ""
    folder: str = ""
    corrections: Corrections = Field(default_factory=dict)
