"""Resources of a parser: a figure folder, text recognition and storage for tables.

A `ParseContext` belongs to one document. Figures are stored once each, as PNG files scaled to the resolution
that vision models use. Icons, banners, plain areas and other decorations are skipped, as are pictures that
cannot be decoded (vector formats, damaged files, too many pixels). A bad picture never rejects its document.
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

_MAX_DECODED_BYTES = 160_000_000  # half of a parser's memory: 40 million RGB or 160 million grey pixels
_KEPT_SIDE_PX = 4000  # text recognition uses no more; 16 million RGB pixels take 64 MB
_PIXEL_BYTES = {"L": 1, "1": 2, "P": 5}  # in Pillow, including the copy for scaling; other modes take 4
MAX_SIDE_PX = 2000  # vision models downscale larger pictures (to 2,048 px), as do screens
MIN_SIDE_PX = 80  # 60 points on screen; smaller pictures are icons
_MAX_PROPORTION = 8.0  # longer pictures are rules and banners
_PLAIN = 8  # maximum range of grey levels in a blank picture
_FLAT_BYTES = 4500  # as PNG: flat shapes take less, line drawings in manuals over 10,000
_PNG_LEVEL = 4  # of 9; higher levels take three times as long to save 5 % (unmeasured)
_DECODING_ERRORS = (  # raised by Pillow's decoders on damaged files
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
# Suffixes that Office appends to generated descriptions.
_MADE_BY_OFFICE = re.compile(
    r"(?:Description automatically generated|AI-generated content may be incorrect"
    r"|Automatisch generierte Beschreibung|KI-generierte Inhalte können fehlerhaft sein)\.?\Z",
    re.IGNORECASE,
)


@dataclass
class FigureFolder:
    """The pictures of one document.

    Attributes:
        limit: maximum number of distinct pictures; further ones are only counted.
        left_out: number of pictures that were not written.
    """

    path: Path = Path()
    limit: int = 0
    left_out: int = 0
    _pictures: dict[str, Picture] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        return len(self._pictures) >= self.limit

    def add(self, image: Image.Image, *, is_named: bool = True) -> Picture | None:
        """Store a picture unless it is a duplicate. Returns None for decorations and if the folder is full.

        Args:
            is_named: the picture has a caption, an alternative text or recognised words. Without them,
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
    """Return a copy on white: in dark mode, black lines would be invisible on a transparent background."""
    if image.mode == "L":
        return image.copy()
    if not image.has_transparency_data:
        return image.convert("RGB")
    seen = image.convert("RGBA")
    white = Image.new("RGBA", seen.size, "white")
    return Image.alpha_composite(white, seen).convert("RGB")


def _is_plain(image: Image.Image) -> bool:
    """Return whether the picture has a single colour."""
    shades = image.convert("L").histogram()
    darkest = next(shade for shade, count in enumerate(shades) if count)
    return not any(shades[darkest + _PLAIN + 1 :])


@dataclass
class ServicePages:
    """Text of scanned pages, which a service reads between two rounds of parsing.

    Attributes:
        texts: recognised text by page number; empty in the first round.
        unread: numbers of requested pages without a text.
    """

    texts: Mapping[int, str]
    unread: list[int] = field(default_factory=list)

    def text_of(self, page_number: int) -> str | None:
        """Return the page's text. If it is missing, return None and record the page as unread."""
        text = self.texts.get(page_number)
        if text is None:
            self.unread.append(page_number)
        return text


@dataclass(frozen=True)
class ParseContext:
    """State of one document during parsing. By default, no figures are stored and no pictures are read.

    Attributes:
        figures: storage for pictures.
        recognition: reads scanned pages and text in pictures.
        service_pages: replaces `recognition` for scanned pages if a service reads them.
        tables: storage for spreadsheet rows that tools calculate with; None = rows are not stored.
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
    """Open a context that writes figures to `folder`, which must be empty.

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
    """Yield the figure and then its text. Decorations and undecodable pictures yield nothing.

    Args:
        label: the picture's alternative text; ignored if it is only a file name.
    """
    if context.figures.is_full:
        context.figures.left_out += context.figures.limit > 0
        return
    try:
        with open_picture(io.BytesIO(content)) as opened:
            if opened.format in ("WMF", "EMF"):
                return
            image = decoded(opened)
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
    """Open a picture without decoding its pixels.

    Raises:
        BadDocumentError: not a picture, damaged, or too large to decode; also raised within the block.
    """
    try:
        with warnings.catch_warnings():
            # Disable Pillow's limits; ours is checked before any pixel is decoded.
            warnings.simplefilter("ignore")
            with Image.open(source) as picture:
                yield picture
    except (Image.DecompressionBombError, MemoryError) as error:
        raise _too_large() from error
    except UnidentifiedImageError as error:
        raise BadDocumentError(
            "The content is not an image in a known format.",
            "Save it again as a PNG or JPEG file.",
            failure="wrong_suffix",
        ) from error
    except _DECODING_ERRORS as error:
        raise BadDocumentError(
            "The image is damaged or incomplete.", "Check that it opens in a viewer; save it again."
        ) from error


def decoded(picture: Image.Image) -> Image.Image:
    """Decode the picture's current page, upright and no larger than text recognition needs.

    The size is checked before any pixel is decoded, since a small file may expand to gigabytes. JPEG files
    are decoded at a reduced size.

    Raises:
        BadDocumentError: too large.
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
    if picture.mode in ("1", "P"):  # these modes don't support smooth scaling
        with_colours = "RGBA" if picture.has_transparency_data else "RGB"
        picture = picture.convert("L" if picture.mode == "1" else with_colours)
    width, height = (max(1, round(side * scale)) for side in picture.size)
    return picture.resize((width, height), reducing_gap=1.0)


def _too_large() -> BadDocumentError:
    millions = _MAX_DECODED_BYTES // 1_000_000
    return BadDocumentError(
        f"The image has more than {millions // 4} million colour or {millions} million grey pixels.",
        "Scale it down and upload it again.",
        failure="image_too_large",
    )
