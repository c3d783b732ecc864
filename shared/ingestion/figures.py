"""Where parsers leave the pictures of a document: PNG files in a folder, each written once.

Decorations are not kept: icons, banners, plain areas.

Runs in the worker process; pictures are scaled down to what vision models look at.
"""

import hashlib
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from shared.documents.models import Element, Figure, Picture
from shared.ingestion.chunking import Outline, path_text

if TYPE_CHECKING:
    from PIL.Image import Image


_DECORATION_TIMES = 3  # a logo comes on every page, a figure that is looked at again comes twice
_CONTEXT_CHARS = 700  # on either side
_MAX_WORDS_CHARS = 1500
_MAX_LABEL_CHARS = 500
_MAX_PATH_CHARS = 300


def figures_of(elements: Sequence[Element]) -> list[Figure]:
    """The figures of a document, in reading order."""
    times = Counter(element.picture.key for element in elements if element.picture is not None)
    outline = Outline()
    figures: list[Figure] = []
    seen: set[str] = set()
    for position, element in enumerate(elements):
        path = outline.enter(element)
        picture = element.picture
        if picture is None or picture.key in seen or times[picture.key] >= _DECORATION_TIMES:
            continue
        seen.add(picture.key)
        figures.append(
            Figure(
                key=picture.key,
                label=element.text[:_MAX_LABEL_CHARS],
                context=_context(elements, position),
                words=picture.words[:_MAX_WORDS_CHARS],
                heading_path=path_text(path)[:_MAX_PATH_CHARS],
                page_number=element.page_number,
                width_px=picture.width_px,
                height_px=picture.height_px,
            )
        )
    return figures


def figure_text(figure: Figure, caption: str) -> str:
    """What is indexed and embedded for a figure: its name in the document, unless the caption says it."""
    return caption if not figure.label or figure.label in caption else f"{figure.label}\n{caption}"


def caption_by_rule(figure: Figure) -> str:
    """A caption without a model: what the document says of the figure, else the words in it."""
    said = figure.label or " ".join(figure.words.split()) or " ".join(figure.context.split())
    short = said[:_CONTEXT_CHARS].strip()
    place = f" on page {figure.page_number}" if figure.page_number else ""
    return short or f"A figure{place}."


def _context(elements: Sequence[Element], position: int) -> str:
    """The text on either side of an element, on the same page."""
    before = _texts(elements[position - 1 :: -1] if position else [], elements[position])
    after = _texts(elements[position + 1 :], elements[position])
    return "\n".join([*reversed(before), *after])


def _texts(elements: Sequence[Element], figure: Element) -> list[str]:
    """Texts from the figure on outwards, until there are enough."""
    words = figure.picture.words if figure.picture else ""
    texts: list[str] = []
    room = _CONTEXT_CHARS
    for element in elements:
        if element.page_number != figure.page_number or room <= 0:
            break
        if element.kind != "figure" and element.text and element.text not in (figure.text, words):
            texts.append(element.text[:room])
            room -= len(element.text)
    return texts


MAX_SIDE_PX = (
    2000  # vision models scale larger pictures down (to 2,048 px), and people see no more on a screen
)
MIN_SIDE_PX = 80  # 60 points on a screen; smaller ones are icons
_MAX_PROPORTION = 8.0  # longer ones are rules and banners
_PLAIN = 8  # shades between the darkest and the lightest point of a picture that shows nothing
_FLAT_BYTES = 4500  # of PNG: flat shapes take less, line drawings of a manual more than 10,000
_PNG_LEVEL = 4  # of 9: more takes three times as long for 5 % fewer bytes (unmeasured)


@dataclass
class FigureFolder:
    """The pictures of one document.

    Attributes:
        limit: most pictures that are different; further ones are counted, not written.
        left_out: how many were not written.
    """

    path: Path
    limit: int
    left_out: int = 0
    _pictures: dict[str, Picture] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        return len(self._pictures) >= self.limit

    def add(self, image: "Image", *, is_named: bool = True) -> Picture | None:
        """Write the picture unless it is there already; None for decorations, and when the folder is full.

        Args:
            is_named: a caption, an alternative text or words in it say that it means something; of others,
                those of a few flat shapes are decorations.

        Raises:
            OSError: the folder cannot be written to.
        """
        if min(image.size) < MIN_SIDE_PX or max(image.size) > _MAX_PROPORTION * min(image.size):
            return None
        shown = _on_white(image)
        shown.thumbnail((MAX_SIDE_PX, MAX_SIDE_PX))
        if _is_plain(shown):
            return None
        content = io.BytesIO()
        shown.save(content, "PNG", compress_level=_PNG_LEVEL)
        if not is_named and content.tell() < _FLAT_BYTES:
            return None
        key = hashlib.sha256(content.getvalue()).hexdigest()
        if key in self._pictures:
            return self._pictures[key]
        if self.is_full:
            self.left_out += 1
            return None
        (self.path / f"{key}.png").write_bytes(content.getvalue())
        self._pictures[key] = Picture(key=key, width_px=shown.width, height_px=shown.height)
        return self._pictures[key]


def _on_white(image: "Image") -> "Image":
    """A copy without transparency: black lines on nothing would be black on black in a dark page."""
    from PIL import Image

    if image.mode == "L":
        return image.copy()
    if not image.has_transparency_data:
        return image.convert("RGB")
    seen = image.convert("RGBA")
    white = Image.new("RGBA", seen.size, "white")
    return Image.alpha_composite(white, seen).convert("RGB")


def _is_plain(image: "Image") -> bool:
    """Whether it is of one colour."""
    shades = image.convert("L").histogram()
    darkest = next(shade for shade, count in enumerate(shades) if count)
    return not any(shades[darkest + _PLAIN + 1 :])
