"""Parser for picture files. Each page becomes a figure, followed by its text if text recognition is
installed.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from PIL.Image import Image

from shared.documents.models import Element, ParsedDocument
from shared.ingestion.parsers.context import ParseContext, decode_picture, open_picture
from shared.ingestion.parsers.tables import recognised_elements
from shared.ingestion.parsers.text import text_paragraphs

FoundOnPage = Callable[[int], Sequence[Element]]
"""Returns the elements that a parser service found on a page, counted from 1."""

# Maximum number of pages in a TIFF file.
MAX_FRAMES = 500


def parse_image(
    path: Path, context: ParseContext | None = None, found: FoundOnPage | None = None
) -> ParsedDocument:
    """Parse each page of a picture file as a figure, followed by its text: the elements that `found` returns,
    or the recognised text. TIFF files may have several pages.

    Raises:
        BadDocumentError: the file is not a picture, damaged, or too large to decode.
    """
    with open_picture(path) as picture:
        return _parse(picture, context or ParseContext(), found)


def _parse(picture: Image, context: ParseContext, found: FoundOnPage | None) -> ParsedDocument:
    frames: int = getattr(picture, "n_frames", 1)
    page_count = min(frames, MAX_FRAMES)
    elements: list[Element] = []
    silent_count = 0
    for page_number in range(1, page_count + 1):
        if page_number > 1:
            picture.seek(page_number - 1)
        figure, *words = _page(picture, page_number, context, found)
        elements += [figure, *words]
        silent_count += not words
    unreadable_pages = 0
    notes = [f"Only the first {MAX_FRAMES} of {frames} pages were read."] if frames > page_count else []
    if silent_count:
        where = "the picture" if page_count == 1 else f"{silent_count} of {page_count} pages"
        if context.service_pages is not None and context.service_pages.unread:
            notes.append(f"The words in {where} were not read.")
            unreadable_pages = silent_count
        elif found is None and context.service_pages is None and context.recognition.has_failed:
            notes.append(f"The words in {where} were not read. {context.recognition.unread_reason}")
            unreadable_pages = silent_count
        else:
            notes.append(f"No words were recognised in {where}.")
    return ParsedDocument(
        elements=tuple(elements),
        page_count=page_count,
        unreadable_pages=unreadable_pages,
        warnings=tuple(notes),
    )


def _page(
    picture: Image, page_number: int, context: ParseContext, found: FoundOnPage | None
) -> Iterator[Element]:
    """Yield the figure of a page, then its text."""
    upright = decode_picture(picture)
    if found is not None:
        words = found(page_number)
    elif context.service_pages is not None:
        words = text_paragraphs(context.service_pages.text_of(page_number) or "", page_number)
    else:
        words = tuple(recognised_elements(context.recognition.read(upright), page_number))
    text = "\n\n".join(element.text for element in words)
    stored = context.figures.add(upright)
    figure = stored.model_copy(update={"words": text}) if stored is not None else None
    yield Element(kind="figure", text="", page_number=page_number, picture=figure)
    yield from words
