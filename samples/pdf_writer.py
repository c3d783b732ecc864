"""Writes sample documents as PDF, with bookmarks, running headers and page numbers. Equal input gives equal
bytes.
"""

from datetime import UTC, datetime
from functools import singledispatchmethod

from fpdf import FPDF
from fpdf.enums import XPos, YPos

from samples.elements import Bullets, Document, Drawing, Element, Heading, Paragraph, Picture, Table

FONT = "Helvetica"  # a core font, which needs no font file but supports only Latin-1
BODY_SIZE_PT = 10.5
HEADING_SIZES_PT = {1: 17, 2: 13, 3: 11.5}
LINE_MM = 5.4
RULE_GREY = 150


class SamplePdf(FPDF):
    """A4 pages with the document's title at the top and the page number at the bottom."""

    def __init__(self, document: Document) -> None:
        super().__init__(format="A4")
        self._document = document
        self.set_margins(22, 22, 22)
        self.set_auto_page_break(auto=True, margin=24)
        self.set_title(document.title)
        self.set_author(document.author)
        self.set_lang(document.language)
        self.set_producer("Groundwork samples")
        # fpdf2 derives the file's id and dates from this date, so that all runs produce the same bytes.
        self.set_creation_date(datetime.fromisoformat(document.date).replace(tzinfo=UTC))

    def header(self) -> None:
        """Print the running title. fpdf2 calls this for each page; the title page has none."""
        if self.page_no() == 1 and self._document.title_page:
            return
        self.set_font(FONT, "", 8)
        self.set_text_color(110)
        self.cell(0, 6, self._document.title, align="R", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
        self.set_text_color(0)
        self.ln(4)

    def footer(self) -> None:
        """Print the page number. fpdf2 calls this for each page."""
        self.set_y(-16)
        self.set_font(FONT, "", 8)
        self.set_text_color(110)
        self.cell(0, 6, str(self.page_no()), align="C")
        self.set_text_color(0)


class DocumentWriter:
    """A writer that lays out the elements of one document on pages."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._pdf = SamplePdf(document)
        self._figures = 0
        self._tables = 0

    def write(self) -> bytes:
        """Lay out all elements and return the bytes of the PDF file."""
        self._write_title()
        for element in self._document.elements:
            self._write_element(element)
        return bytes(self._pdf.output())

    def _write_title(self) -> None:
        pdf = self._pdf
        pdf.add_page()
        if self._document.title_page:
            pdf.set_y(80)
        pdf.set_font(FONT, "B", 24 if self._document.title_page else 17)
        pdf.multi_cell(0, 11, self._document.title, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
        pdf.ln(4)
        pdf.set_font(FONT, "", BODY_SIZE_PT)
        for line in self._document.details:
            self._line(line)
        pdf.ln(4)

    @singledispatchmethod
    def _write_element(self, element: Element) -> None:
        raise TypeError(f"unsupported PDF value: {type(element).__name__}")

    @_write_element.register
    def _heading(self, element: Heading) -> None:
        pdf = self._pdf
        starts_chapter = element.level == 1 and self._document.title_page
        if starts_chapter or pdf.will_page_break(4 * LINE_MM):
            pdf.add_page()
        pdf.ln(2)
        pdf.set_font(FONT, "B", HEADING_SIZES_PT[element.level])
        pdf.start_section(element.text, level=element.level - 1)
        pdf.multi_cell(0, 8, element.text, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
        pdf.ln(1)
        pdf.set_font(FONT, "", BODY_SIZE_PT)

    @_write_element.register
    def _paragraph(self, element: Paragraph) -> None:
        self._line(element.text)
        self._pdf.ln(2.5)

    @_write_element.register
    def _bullets(self, element: Bullets) -> None:
        for item in element.items:
            self._pdf.set_x(self._pdf.l_margin + 4)
            self._line(f"- {item}")
        self._pdf.ln(2.5)

    @_write_element.register
    def _table(self, element: Table) -> None:
        pdf = self._pdf
        self._tables += 1
        if pdf.will_page_break(7 * len(element.rows) + 10):
            pdf.add_page()
        self._caption(f"Table {self._tables}: {element.caption}")
        pdf.set_draw_color(RULE_GREY)
        with pdf.table(col_widths=element.widths, line_height=6, text_align="LEFT") as table:
            for row in element.rows:
                cells = table.row()
                for text in row:
                    cells.cell(text)
        pdf.set_draw_color(0)
        pdf.ln(4)

    @_write_element.register
    def _picture(self, element: Picture) -> None:
        pdf = self._pdf
        image = element.draw()
        height_mm = element.width_mm * image.height / image.width
        self._make_room(height_mm)
        left = (pdf.w - element.width_mm) / 2
        pdf.image(image, x=left, y=pdf.get_y(), w=element.width_mm, h=height_mm)
        self._finish_figure(height_mm, element.caption)

    @_write_element.register
    def _drawing(self, element: Drawing) -> None:
        self._make_room(element.height_mm)
        element.draw(self._pdf, self._pdf.l_margin + 10, self._pdf.get_y())
        self._pdf.set_font(FONT, "", BODY_SIZE_PT)
        self._pdf.set_draw_color(0)
        self._pdf.set_line_width(0.2)
        self._finish_figure(element.height_mm, element.caption)

    def _make_room(self, height_mm: float) -> None:
        if self._pdf.will_page_break(height_mm + 14):
            self._pdf.add_page()

    def _finish_figure(self, height_mm: float, caption: str) -> None:
        self._figures += 1
        self._pdf.set_y(self._pdf.get_y() + height_mm + 3)
        self._caption(f"Figure {self._figures}: {caption}")
        self._pdf.ln(3)

    def _caption(self, text: str) -> None:
        self._pdf.set_font(FONT, "I", 9)
        self._line(text)
        self._pdf.set_font(FONT, "", BODY_SIZE_PT)

    def _line(self, text: str) -> None:
        self._pdf.multi_cell(0, LINE_MM, text, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)


def write_pdf(document: Document) -> bytes:
    """Return the document as the bytes of a PDF file."""
    return DocumentWriter(document).write()
