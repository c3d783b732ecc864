"""Drawings and pictures for the pages of test PDFs."""

import math
from typing import Self

from PIL import Image, ImageDraw

from tests.unit.ingestion.pdf_files import PdfMaker

TEXT = (
    "The pump moves water from the tank to the consumer. It is checked every year by a trained person, "
    "who writes down the pressure, the temperature and the sound of the bearings. "
)


class FigureMaker(PdfMaker):
    """A PDF writer that adds figures, and elements that resemble figures, below the previous content."""

    def chart(self, bars: int = 6, height: float = 60, caption: str = "") -> Self:
        """Draw a bar chart with axes. Sizes are in millimetres."""
        left, top = 30.0, self.pdf.get_y() + 4
        self.pdf.set_draw_color(0)
        self.pdf.line(left, top, left, top + height)
        self.pdf.line(left, top + height, left + 20 * bars, top + height)
        for number in range(bars):
            bar = height * (number + 1) / bars
            self.pdf.set_fill_color(30, 90, 40 * number)
            self.pdf.rect(left + 20 * number + 3, top + height - bar, 14, bar, style="F")
        return self._captioned(top + height + 6, caption)

    def photo(
        self, seed: int = 1, size: tuple[float, float] = (80, 50), left: float = 30, caption: str = ""
    ) -> Self:
        """Add a raster picture. Sizes are in millimetres."""
        top = self.pdf.get_y() + 4
        self.pdf.image(picture(seed), x=left, y=top, w=size[0], h=size[1])
        return self._captioned(top + size[1] + 4, caption)

    def logo(self) -> Self:
        """Add a picture that is the same and in the same place on every page, and large enough to be a
        figure.
        """
        self.pdf.image(picture(99), x=150, y=245, w=40, h=30)
        return self

    def background(self, image: Image.Image | None = None) -> Self:
        """Add a picture that covers the whole page, behind its content."""
        self.pdf.image(image or picture(7), x=0, y=0, w=210, h=297)
        return self

    def ruled(self, rows: int = 12) -> Self:
        """Add rows of text, each with a line below it."""
        self.pdf.set_font("Helvetica", "", 10)
        for number in range(rows):
            text = f"Pressure number {number} of the second pump, measured at full load in the morning"
            self.pdf.cell(0, 5, text, border="B", new_x="LMARGIN", new_y="NEXT")
        self.pdf.ln(4)
        return self

    def _captioned(self, y: float, caption: str) -> Self:
        self.pdf.set_y(y)
        if caption:
            self.paragraph(caption)
        return self


def picture(seed: int, size: tuple[int, int] = (320, 200)) -> Image.Image:
    """Return a picture of discs in several colours. Different seeds give different pictures."""
    image = Image.new("RGB", size, (240, 240, 230))
    draw = ImageDraw.Draw(image)
    for number in range(12):
        x = size[0] * (0.5 + 0.4 * math.sin(seed + number * 1.7))
        y = size[1] * (0.5 + 0.4 * math.cos(seed * 2 + number * 1.1))
        radius = 10 + 3 * number
        colour = ((seed * 40 + number * 20) % 256, (number * 55) % 256, (seed * 90) % 256)
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour, outline=(0, 0, 0))
    return image
