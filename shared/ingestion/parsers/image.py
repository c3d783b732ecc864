"""Pictures: a figure on page 1, and the words in it where text recognition is installed.

A picture's size is checked before it is decoded: a small file may unfold to gigabytes.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shared.documents.models import Element, ParsedDocument
from shared.ingestion.parsers.context import Workbench, bare_workbench
from shared.ingestion.parsers.ocr import tesseract_path
from shared.ingestion.parsers.pictures import DECODING_ERRORS, MAX_PIXELS
from shared.ingestion.parsers.text import text_paragraphs
from shared.platform.errors import BadDocumentError

if TYPE_CHECKING:
    from PIL.Image import Image

FoundOnPage = Callable[[int], Sequence[Element]]
"""What a parser service found on a page, counted from 1."""

MAX_FRAMES = 500  # pages of a TIFF


def parse_image(path: Path, bench: Workbench | None = None) -> ParsedDocument:
    """A figure for each page of the picture (a TIFF may hold several), followed by its words.

    Raises:
        BadDocumentError: no picture, damaged, or too large to decode.
    """
    return parse_pages(path, bench or bare_workbench())


def parse_pages(path: Path, bench: Workbench, found: FoundOnPage | None = None) -> ParsedDocument:
    """A figure for each page, followed by what was `found` on it, else by the words that are recognised.

    Raises:
        BadDocumentError: no picture, damaged, or too large to decode.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Pillow's own limits; ours is checked below, before any pixel is decoded.
            warnings.simplefilter("ignore")
            with Image.open(path) as picture:
                return _parse(picture, bench, found)
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


def _parse(picture: "Image", bench: Workbench, found: FoundOnPage | None) -> ParsedDocument:
    frames: int = getattr(picture, "n_frames", 1)
    page_count = min(frames, MAX_FRAMES)
    elements: list[Element] = []
    silent: list[int] = []
    for page_number in range(1, page_count + 1):
        if page_number > 1:
            picture.seek(page_number - 1)
        figure, *words = _page(picture, page_number, bench, found)
        elements += [figure, *words]
        if not words:
            silent.append(page_number)
    notes = [f"Only the first {MAX_FRAMES} of {frames} pages were read."] if frames > page_count else []
    if silent:
        notes.append(_silence(silent, page_count, bench, by_service=found is not None))
    return ParsedDocument(elements=tuple(elements), page_count=page_count, warnings=tuple(notes))


def _page(
    picture: "Image", page_number: int, bench: Workbench, found: FoundOnPage | None
) -> Iterator[Element]:
    """The figure, then the words in it."""
    from PIL import ImageOps

    if picture.width * picture.height > MAX_PIXELS:
        raise _too_large()
    picture.load()
    upright = ImageOps.exif_transpose(picture)
    words = found(page_number) if found else _words(upright, page_number, bench)
    text = "\n\n".join(element.text for element in words)
    kept = bench.figures.add(upright)
    shown = kept.model_copy(update={"words": text}) if kept is not None else None
    yield Element(kind="figure", text="", page_number=page_number, picture=shown)
    yield from words


def _words(upright: "Image", page_number: int, bench: Workbench) -> Sequence[Element]:
    """What text recognition reads, ours or a service's."""
    if bench.elsewhere is not None:
        text = bench.elsewhere.text_of(page_number) or ""
    else:
        text = (bench.recognition.read(upright) or "") if bench.recognition.is_available else ""
    return [element.model_copy(update={"page_number": page_number}) for element in text_paragraphs(text)]


def _too_large() -> BadDocumentError:
    return BadDocumentError(
        f"The picture has more than {MAX_PIXELS // 1_000_000} million pixels.",
        "Scale it down and drop it again.",
    )


def _silence(pages: list[int], page_count: int, bench: Workbench, *, by_service: bool) -> str:
    where = "the picture" if page_count == 1 else f"{len(pages)} of {page_count} pages"
    if bench.unread_pages:
        return f"The words in {where} were not read."
    if not by_service and bench.elsewhere is None and tesseract_path() is None:
        return f"The words in {where} were not read: text recognition (Tesseract) is not installed."
    return f"No words were recognised in {where}."
