"""Where parsers leave the pictures of a document: PNG files in a folder, each written once.

Decorations are not kept: icons, banners, plain areas.

Runs in the worker process; pictures are scaled down to what vision models look at.
"""

import hashlib
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from shared.models.blocks import Picture

if TYPE_CHECKING:
    from PIL.Image import Image

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
