"""The two icons of the Teams app, drawn with Pillow: a page with three lines, one of them highlighted.

Sizes and colours follow Microsoft's rules: learn.microsoft.com, "Design your Teams app icon".
"""

import io

from PIL import Image, ImageDraw

COLOR_SIZE, OUTLINE_SIZE = 192, 32  # side length of the square icons, in pixels
_BLUE, _WHITE, _MARK = (30, 92, 140, 255), (255, 255, 255, 255), (244, 180, 60, 255)
_CLEAR = (0, 0, 0, 0)
_SHARPER = 4  # icons are drawn larger by this factor and scaled down, because Pillow doesn't antialias


def color_icon() -> bytes:
    """Return the colour icon as an opaque PNG of 192 x 192 pixels: a white page on blue."""
    image, draw, unit = _canvas(COLOR_SIZE, _BLUE)
    draw.rounded_rectangle(_box(unit, 9, 6, 23, 26), radius=2 * unit, fill=_WHITE)
    draw.rounded_rectangle(_box(unit, 11, 14, 21, 17.5), radius=unit / 2, fill=_MARK)
    for top in (10, 15, 20):
        draw.rounded_rectangle(_box(unit, 12, top, 20, top + 1.5), radius=unit / 2, fill=_BLUE)
    return _png(image.convert("RGB"), COLOR_SIZE)


def outline_icon() -> bytes:
    """Return the outline icon as a PNG of 32 x 32 pixels: white lines on a transparent background."""
    image, draw, unit = _canvas(OUTLINE_SIZE, _CLEAR)
    draw.rounded_rectangle(_box(unit, 8, 4, 24, 28), radius=2 * unit, outline=_WHITE, width=round(2 * unit))
    for top in (10, 15, 20):
        draw.rounded_rectangle(_box(unit, 12, top, 20, top + 2), radius=unit / 2, fill=_WHITE)
    return _png(image, OUTLINE_SIZE)


def _canvas(
    size: int, background: tuple[int, int, int, int]
) -> tuple[Image.Image, ImageDraw.ImageDraw, float]:
    """Return an empty image, a drawing object for it, and the length of 1/32 of its side in pixels."""
    image = Image.new("RGBA", (size * _SHARPER, size * _SHARPER), background)
    return image, ImageDraw.Draw(image), size * _SHARPER / 32


def _box(unit: float, left: float, top: float, right: float, bottom: float) -> tuple[float, ...]:
    return (left * unit, top * unit, right * unit, bottom * unit)


def _png(image: Image.Image, size: int) -> bytes:
    if image.mode == "RGBA":
        # Only the alpha channel is resized, because mixing white with transparent black would give grey.
        alpha = image.getchannel("A").resize((size, size), Image.Resampling.LANCZOS)
        image = Image.new("RGBA", (size, size), _WHITE)
        image.putalpha(alpha)
    else:
        image = image.resize((size, size), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
