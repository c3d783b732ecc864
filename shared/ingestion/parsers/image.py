"""Pictures: a figure on page 1, and the words in it where text recognition is installed.

A picture's size is checked before it is decoded: a small file may unfold to gigabytes.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from shared.errors import BadDocumentError
from shared.ingestion.parsers.embedded_pictures import DECODING_ERRORS, MAX_PIXELS
from shared.ingestion.parsers.ocr import tesseract_path
from shared.ingestion.parsers.text import text_paragraphs
from shared.ingestion.workbench import Workbench, bare_workbench
from shared.models.blocks import Element, ParsedDocument

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_FRAMES = 500  # pages of a TIFF


def parse_image(path: Path, bench: Workbench | None = None) -> ParsedDocument:
    """A figure for each page of the picture (a TIFF may hold several), followed by its words.

    Raises:
        BadDocumentError: no picture, damaged, or too large to decode.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Pillow's own limits; ours is checked below, before any pixel is decoded.
            warnings.simplefilter("ignore")
            with Image.open(path) as picture:
                return _parse(picture, bench or bare_workbench())
    except Image.DecompressionBombError as error:
        raise _too_large() from error
    except UnidentifiedImageError as error:
        raise BadDocumentError(
            "The content is not a picture of a known kind.", "Save it again as PNG or JPEG."
        ) from error
    except DECODING_ERRORS as error:
        raise BadDocumentError(
            "The picture is damaged or incomplete.", "Check that it opens in a viewer; save it again."
        ) from error


def _parse(picture: "Image", bench: Workbench) -> ParsedDocument:
    frames: int = getattr(picture, "n_frames", 1)
    page_count = min(frames, MAX_FRAMES)
    elements: list[Element] = []
    silent: list[int] = []
    for page_number in range(1, page_count + 1):
        if page_number > 1:
            picture.seek(page_number - 1)
        figure, *words = _page(picture, page_number, bench)
        elements += [figure, *words]
        if not words:
            silent.append(page_number)
    notes = [f"Only the first {MAX_FRAMES} of {frames} pages were read."] if frames > page_count else []
    if silent:
        notes.append(_silence(silent, page_count))
    return ParsedDocument(elements=tuple(elements), page_count=page_count, warnings=tuple(notes))


def _page(picture: "Image", page_number: int, bench: Workbench) -> Iterator[Element]:
    """The figure, then the words in it."""
    from PIL import ImageOps

    if picture.width * picture.height > MAX_PIXELS:
        raise _too_large()
    picture.load()
    upright = ImageOps.exif_transpose(picture)
    text = (bench.recognition.read(upright) or "") if bench.recognition.is_available else ""
    kept = bench.figures.add(upright)
    shown = kept.model_copy(update={"words": text}) if kept is not None else None
    yield Element(kind="figure", text="", page_number=page_number, picture=shown)
    for element in text_paragraphs(text):
        yield element.model_copy(update={"page_number": page_number})


def _too_large() -> BadDocumentError:
    return BadDocumentError(
        f"The picture has more than {MAX_PIXELS // 1_000_000} million pixels.",
        "Scale it down and drop it again.",
    )


def _silence(pages: list[int], page_count: int) -> str:
    where = "the picture" if page_count == 1 else f"{len(pages)} of {page_count} pages"
    if tesseract_path() is None:
        return f"The words in {where} were not read: text recognition (Tesseract) is not installed."
    return f"No words were recognised in {where}."
