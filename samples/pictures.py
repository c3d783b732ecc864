"""Raster pictures of the sample documents, drawn with Pillow in place of photographs."""

import math

from PIL import Image, ImageDraw, ImageFont

SIZE = (660, 400)
STEEL = (120, 136, 150)
DARK = (38, 50, 60)


def pump_photo() -> Image.Image:
    """Draw the pump on its base frame, with motor, coupling guard and flanges."""
    picture = _backdrop()
    draw = ImageDraw.Draw(picture)
    draw.rectangle((60, 310, 610, 345), fill=DARK)
    draw.rounded_rectangle((330, 150, 590, 305), radius=24, fill=(30, 92, 140))
    for x in range(350, 580, 18):
        draw.line((x, 158, x, 297), fill=(22, 70, 110), width=4)
    draw.rectangle((265, 200, 335, 270), fill=(214, 160, 40))
    draw.ellipse((95, 140, 275, 320), fill=STEEL, outline=DARK, width=5)
    draw.ellipse((150, 195, 220, 265), fill=(160, 172, 182), outline=DARK, width=4)
    draw.rectangle((165, 75, 205, 150), fill=STEEL, outline=DARK, width=3)
    draw.rectangle((145, 60, 225, 80), fill=DARK)
    draw.rectangle((40, 210, 100, 250), fill=STEEL, outline=DARK, width=3)
    draw.rectangle((28, 190, 45, 270), fill=DARK)
    _label(draw, (400, 110), "HERON 400")
    return picture


def control_panel() -> Image.Image:
    """Draw a control panel with lamps, a display and an emergency stop button."""
    picture = Image.new("RGB", SIZE, (206, 210, 212))
    draw = ImageDraw.Draw(picture)
    draw.rounded_rectangle((60, 40, 600, 360), radius=18, fill=(70, 78, 84), outline=DARK, width=6)
    draw.rectangle((95, 75, 345, 205), fill=(16, 46, 30))
    _label(draw, (115, 95), "5.8 bar", fill=(120, 240, 160))
    _label(draw, (115, 145), "61 C", fill=(120, 240, 160))
    lamps = [(400, (60, 200, 90), "RUN"), (460, (240, 190, 50), "WARN"), (520, (70, 70, 76), "TRIP")]
    for x, colour, name in lamps:
        draw.ellipse((x, 90, x + 40, 130), fill=colour, outline=(20, 20, 20), width=3)
        _label(draw, (x - 2, 138), name, size=16, fill=(235, 235, 235))
    draw.ellipse((405, 215, 535, 345), fill=(245, 205, 60))
    draw.ellipse((430, 240, 510, 320), fill=(200, 32, 32), outline=(120, 10, 10), width=4)
    for index, name in enumerate(("START", "STOP", "RESET")):
        left = 95 + index * 90
        draw.rounded_rectangle((left, 250, left + 75, 310), radius=8, fill=(180, 186, 190))
        _label(draw, (left + 10, 268), name, size=18)
    return picture


def worn_seal() -> Image.Image:
    """Draw a seal face with so many scratches that the seal must be replaced."""
    picture = _backdrop()
    draw = ImageDraw.Draw(picture)
    centre = (330, 200)
    for radius, colour in ((170, DARK), (160, (92, 96, 100)), (90, DARK), (82, (226, 228, 230))):
        _disc(draw, centre, radius, colour)
    for step in range(40):
        angle = math.radians(step * 9)
        inner, outer = 96 + (step * 7) % 20, 130 + (step * 11) % 26
        start = (centre[0] + inner * math.cos(angle), centre[1] + inner * math.sin(angle))
        end = (centre[0] + outer * math.cos(angle + 0.15), centre[1] + outer * math.sin(angle + 0.15))
        draw.line((*start, *end), fill=(180, 120, 70), width=3)
    _label(draw, (470, 350), "10 mm", size=18)
    draw.line((450, 345, 560, 345), fill=DARK, width=4)
    return picture


def _backdrop() -> Image.Image:
    picture = Image.new("RGB", SIZE)
    draw = ImageDraw.Draw(picture)
    for y in range(SIZE[1]):
        shade = 232 - y // 8
        draw.line((0, y, SIZE[0], y), fill=(shade, shade, shade - 6))
    return picture


def _disc(
    draw: ImageDraw.ImageDraw, centre: tuple[int, int], radius: int, colour: tuple[int, int, int]
) -> None:
    x, y = centre
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)


def _label(
    draw: ImageDraw.ImageDraw,
    position: tuple[int, int],
    text: str,
    *,
    size: int = 30,
    fill: tuple[int, int, int] = DARK,
) -> None:
    draw.text(position, text, fill=fill, font=ImageFont.load_default(size))
