"""Resources for parsing one document: a folder for figures, text recognition, and storage for tables.

Each distinct figure is stored once, as a PNG file scaled to the resolution that vision models use. Icons,
banners, plain areas and other decorations are skipped, as are pictures that cannot be decoded (vector
formats, damaged files, too many pixels). A bad picture never causes its document to be rejected.
"""

import hashlib
import io
import re
import struct
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image, ImageOps, UnidentifiedImageError

from shared.documents.models import Element, Picture
from shared.ingestion.parsers.ocr import TextRecognition
from shared.platform.errors import BadDocumentError
from shared.tables.loader import TableFile

# Maximum size of a decoded picture in bytes, half of a worker's memory: 40 million RGB pixels or 160 million
# grey ones.
_MAX_DECODED_BYTES = 160_000_000
# Longest side of a decoded picture. Text recognition needs no higher resolution, and 16 million RGB pixels
# take 64 MB.
_KEPT_SIDE_PX = 4000
# Bytes per pixel in Pillow by mode, including the copy made for scaling. Modes not listed take 4.
_PIXEL_BYTES = {"L": 1, "1": 2, "P": 5}
# Longest side of a stored figure. Screens and vision models scale larger pictures down to about this size.
MAX_SIDE_PX = 2000
# Minimum width and height of a figure in pixels, which are 60 points on screen. Smaller pictures are icons.
MIN_SIDE_PX = 80
# Maximum ratio of the longer side to the shorter one. More elongated pictures are rules and banners.
_MAX_PROPORTION = 8.0
# Maximum difference of grey levels within a picture that counts as blank.
_PLAIN = 8
# Minimum size of a figure's PNG file. Smaller files contain flat shapes; line drawings in manuals take over
# 10,000 bytes.
_FLAT_BYTES = 4500
# PNG compression level, from 0 to 9. Higher levels take three times as long to save 5 % (unmeasured).
_PNG_LEVEL = 4
# Errors that Pillow's decoders raise for damaged files.
_DECODING_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    TypeError,
    LookupError,
    ArithmeticError,
    struct.error,
)
_NAMES_A_FILE = re.compile(
    r"(?:image|picture|img|grafik|bild)?[\s_-]*\d*\Z|.*\.(?:png|jpe?g|gif|bmp|tiff?|svg|webp|emf|wmf)\Z",
    re.IGNORECASE,
)
# Matches the sentence that Office appends to a picture description that it has generated.
_MADE_BY_OFFICE = re.compile(
    r"(?:Description automatically generated|AI-generated content may be incorrect"
    r"|Automatisch generierte Beschreibung|KI-generierte Inhalte können fehlerhaft sein)\.?\Z",
    re.IGNORECASE,
)


@dataclass
class FigureFolder:
    """Folder that stores the distinct pictures of one document as PNG files.

    Attributes:
        limit: maximum number of distinct pictures; 0 = store none.
        left_out: number of pictures that were not stored because of the limit.
    """

    path: Path = Path()
    limit: int = 0
    left_out: int = 0
    _pictures: dict[str, Picture] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        return len(self._pictures) >= self.limit

    def add(self, image: Image.Image, *, is_named: bool = True) -> Picture | None:
        """Store a picture unless it is a duplicate. Return None if the picture is decoration or the folder is
        full.

        Args:
            is_named: whether the picture has a caption, alternative text or recognised words. Without them,
                pictures of a few flat shapes count as decorations.

        Raises:
            OSError: the folder is not writable.
        """
        if min(image.size) < MIN_SIDE_PX or max(image.size) > _MAX_PROPORTION * min(image.size):
            return None
        opaque = _on_white(image)
        opaque.thumbnail((MAX_SIDE_PX, MAX_SIDE_PX))
        if _is_plain(opaque):
            return None
        content = io.BytesIO()
        opaque.save(content, "PNG", compress_level=_PNG_LEVEL)
        if not is_named and content.tell() < _FLAT_BYTES:
            return None
        key = hashlib.sha256(content.getvalue()).hexdigest()
        if key in self._pictures:
            return self._pictures[key]
        if self.is_full:
            self.left_out += 1
            return None
        (self.path / f"{key}.png").write_bytes(content.getvalue())
        self._pictures[key] = Picture(key=key, width_px=opaque.width, height_px=opaque.height)
        return self._pictures[key]


def _on_white(image: Image.Image) -> Image.Image:
    """Return a copy of the picture on a white background, because black lines on a transparent background
    would be invisible in dark mode.
    """
    if image.mode == "L":
        return image.copy()
    if not image.has_transparency_data:
        return image.convert("RGB")
    seen = image.convert("RGBA")
    white = Image.new("RGBA", seen.size, "white")
    return Image.alpha_composite(white, seen).convert("RGB")


def _is_plain(image: Image.Image) -> bool:
    """Return whether a picture is blank: all pixels have nearly the same brightness."""
    shades = image.convert("L").histogram()
    darkest = next(shade for shade, count in enumerate(shades) if count)
    return not any(shades[darkest + _PLAIN + 1 :])


@dataclass
class ServicePages:
    """Text of scanned pages that an external service has read. A file is parsed twice: first to find these
    pages, then with their text.

    Attributes:
        texts: recognised text by page number; empty in the first round.
        unread: numbers of pages that still have to be read.
    """

    texts: Mapping[int, str]
    unread: list[int] = field(default_factory=list)

    def text_of(self, page_number: int) -> str | None:
        """Return the text that the service recognised on a page. If it hasn't read the page, record the page
        as unread and return None.
        """
        text = self.texts.get(page_number)
        if text is None:
            self.unread.append(page_number)
        return text


@dataclass(frozen=True)
class ParseContext:
    """Resources for parsing one document. By default, no figures are stored and no text is recognised.

    Attributes:
        figures: storage for pictures.
        recognition: reads scanned pages and text in pictures.
        service_pages: replaces `recognition` for scanned pages if a service reads them.
        tables: storage for spreadsheet rows, for use in SQL queries; None = rows are not stored.
    """

    figures: FigureFolder = field(default_factory=FigureFolder)
    recognition: TextRecognition = field(default_factory=TextRecognition)
    service_pages: ServicePages | None = None
    tables: TableFile | None = None


@contextmanager
def open_context(
    folder: Path,
    max_figures: int,
    recognition_budget_s: float,
    service_pages: ServicePages | None = None,
    tables: TableFile | None = None,
    *,
    languages: Path | None = None,
) -> Iterator[ParseContext]:
    """Return a context that writes figures to `folder`, which must be empty. Its text recognition is closed
    when the block exits.

    Args:
        languages: see `TextRecognition`.
    """
    recognition = TextRecognition(recognition_budget_s, languages)
    try:
        yield ParseContext(FigureFolder(folder, max_figures), recognition, service_pages, tables)
    finally:
        recognition.close()


def embedded_figures(
    content: bytes, label: str, context: ParseContext, page_number: int | None = None
) -> Iterator[Element]:
    """Yield a figure for an embedded picture, followed by its recognised text. Decorations and broken
    pictures are skipped.

    Args:
        label: alternative text of the picture; ignored if it is only a file name.
    """
    if context.figures.is_full:
        context.figures.left_out += context.figures.limit > 0
        return
    try:
        with open_picture(io.BytesIO(content)) as opened:
            if opened.format in ("WMF", "EMF"):
                return
            image = decode_picture(opened)
    except BadDocumentError:
        return
    picture = context.figures.add(image)
    if picture is None:
        return
    words = context.recognition.read_labels(image)
    name = _MADE_BY_OFFICE.sub("", " ".join(label.split())).rstrip()
    yield Element(
        kind="figure",
        text="" if _NAMES_A_FILE.match(name) else name,
        page_number=page_number,
        picture=picture.model_copy(update={"words": words}),
    )
    if words:
        yield Element(kind="paragraph", text=words, page_number=page_number)


@contextmanager
def open_picture(source: Path | io.BytesIO) -> Iterator[Image.Image]:
    """Open a picture as a context manager, without decoding its pixels.

    Raises:
        BadDocumentError: the file is not a picture, damaged, or too large to decode; also raised for decoding
            errors within the `with` block.
    """
    try:
        with warnings.catch_warnings():
            # Disable Pillow's size limits, because `decode_picture` checks a stricter limit before it decodes
            # any pixel.
            warnings.simplefilter("ignore")
            with Image.open(source) as picture:
                yield picture
    except (Image.DecompressionBombError, MemoryError) as error:
        raise _too_large() from error
    except UnidentifiedImageError as error:
        raise BadDocumentError(
            "The content is not an image in a known format.",
            "Save the image again as a PNG or JPEG file.",
            failure="wrong_suffix",
        ) from error
    except _DECODING_ERRORS as error:
        raise BadDocumentError(
            "The image is damaged or incomplete.",
            "Check that the image opens in a viewer, and save it again.",
        ) from error


def decode_picture(picture: Image.Image) -> Image.Image:
    """Decode the current page of a picture, rotated upright and scaled down to the size that text recognition
    needs.

    The size is checked before any pixel is decoded, since a small file may expand to gigabytes. JPEG files
    are decoded at a reduced size.

    Raises:
        BadDocumentError: the picture has too many pixels.
    """
    picture.draft(None, (_KEPT_SIDE_PX, _KEPT_SIDE_PX))
    if picture.width * picture.height * _PIXEL_BYTES.get(picture.mode, 4) > _MAX_DECODED_BYTES:
        raise _too_large()
    picture.load()
    return ImageOps.exif_transpose(_scaled_down(picture))


def _scaled_down(picture: Image.Image) -> Image.Image:
    scale = _KEPT_SIDE_PX / max(picture.size)
    if scale >= 1:
        return picture
    # Pillow can't scale these modes smoothly, so convert them first.
    if picture.mode in ("1", "P"):
        with_colours = "RGBA" if picture.has_transparency_data else "RGB"
        picture = picture.convert("L" if picture.mode == "1" else with_colours)
    width, height = (max(1, round(side * scale)) for side in picture.size)
    return picture.resize((width, height), reducing_gap=1.0)


def _too_large() -> BadDocumentError:
    millions = _MAX_DECODED_BYTES // 1_000_000
    return BadDocumentError(
        f"The image has more than {millions // 4} million colour or {millions} million grey pixels.",
        "Reduce the image size and upload it again.",
        failure="image_too_large",
    )
