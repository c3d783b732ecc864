"""Pictures inside other files, as figures: decoded with care, kept, and their words read.

A picture that cannot be decoded (a vector format, a damaged one, one of too many pixels) is left out: it is
never a reason to refuse the document that holds it.
"""

import base64
import binascii
import io
import re
import struct
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shared.documents.models import Element
from shared.ingestion.parsers.context import Workbench

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 100_000_000  # 300 MB decoded; an A2 page at 600 dpi has 139 million, one at 300 dpi 35
DECODING_ERRORS = (  # what Pillow's decoders raise on damaged files
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    TypeError,
    LookupError,
    ArithmeticError,
    struct.error,
)
_DATA_URI = re.compile(r"\s*data:image/[\w.+-]+;base64,(.+)", re.DOTALL | re.IGNORECASE)
_NAMES_A_FILE = re.compile(r"(?:image|picture|img|grafik|bild)?[\s_-]*\d*(?:\.\w{3,4})?\Z", re.IGNORECASE)


def embedded_figures(
    content: bytes, label: str, bench: Workbench, page_number: int | None = None
) -> Iterator[Element]:
    """The figure, followed by the words in it; nothing for decorations and what cannot be decoded.

    Args:
        label: the picture's alternative text; one that only names a file says nothing.
    """
    if bench.figures.is_full:
        bench.figures.left_out += bench.figures.limit > 0
        return
    image = _decoded(content)
    if image is not None:
        yield from figure_elements(image, label, bench, page_number)


def figure_elements(
    image: "Image", label: str, bench: Workbench, page_number: int | None = None
) -> Iterator[Element]:
    """The same for a picture that is decoded already."""
    picture = bench.figures.add(image)
    if picture is None:
        return
    recognition = bench.recognition
    words = (recognition.read(image) or "") if recognition.is_available else ""
    name = " ".join(label.split())
    yield Element(
        kind="figure",
        text="" if _NAMES_A_FILE.match(name) else name,
        page_number=page_number,
        picture=picture.model_copy(update={"words": words}),
    )
    if words:
        yield Element(kind="paragraph", text=words, page_number=page_number)


def data_uri_content(uri: str) -> bytes | None:
    """The bytes of a picture that stands in the page itself; None for addresses, which are never fetched."""
    found = _DATA_URI.match(uri)
    if found is None:
        return None
    try:
        return base64.b64decode("".join(found[1].split()))
    except binascii.Error:
        return None


def _decoded(content: bytes) -> "Image | None":
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings():
            # Pillow's own limits; ours is checked before any pixel is decoded.
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(content)) as image:
                if image.width * image.height > MAX_PIXELS or image.format in ("WMF", "EMF"):
                    return None
                image.load()
                return ImageOps.exif_transpose(image)
    except (*DECODING_ERRORS, Image.DecompressionBombError):
        return None
