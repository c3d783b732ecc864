"""Vector drawings of the sample documents, made of lines and shapes without embedded pictures."""

from fpdf import FPDF

FONT = "Helvetica"
BLUE = (30, 92, 140)
RED = (180, 40, 40)


def hydraulic_circuit(pdf: FPDF, left: float, top: float) -> None:
    """Draw a hydraulic circuit: tank, pump, check valve, relief valve and consumer, connected by lines."""
    _style(pdf)
    boxes = {"Tank T1": 0, "Pump P1": 36, "Check valve V2": 72, "Consumer C1": 112}
    for name, offset in boxes.items():
        pdf.rect(left + offset, top + 20, 28, 14)
        _text(pdf, left + offset + 1.5, top + 28, name)
    for offset in (28, 64, 100):
        _arrow(pdf, left + offset, top + 27, 8 if offset < 100 else 12)
    # The line of the relief valve branches off before the consumer and returns to the tank.
    pdf.set_draw_color(*RED)
    pdf.polyline(
        [
            (left + 104, top + 27),
            (left + 104, top + 48),
            (left + 74, top + 48),
        ]
    )
    pdf.polygon([(left + 74, top + 48), (left + 82, top + 43), (left + 82, top + 53)])
    pdf.polygon([(left + 66, top + 43), (left + 66, top + 53), (left + 74, top + 48)])
    pdf.polyline([(left + 66, top + 48), (left + 14, top + 48), (left + 14, top + 34)])
    _text(pdf, left + 60, top + 58, "Relief valve V1, set to 7.2 bar")
    _text(pdf, left + 26, top + 46, "Return line")
    pdf.circle(left + 50, top + 12, 5)
    pdf.line(left + 50, top + 17, left + 50, top + 20)
    _text(pdf, left + 57, top + 12, "Pressure gauge G1")


def performance_curve(pdf: FPDF, left: float, top: float) -> None:
    """Draw a chart of pump head against flow for two impellers, with axes, grid and legend."""
    _style(pdf)
    origin_x, origin_y, width, height = left + 14, top + 62, 110, 56
    pdf.set_draw_color(205)
    for step in range(1, 6):
        pdf.line(origin_x + step * width / 5, origin_y, origin_x + step * width / 5, origin_y - height)
        pdf.line(origin_x, origin_y - step * height / 5, origin_x + width, origin_y - step * height / 5)
    pdf.set_draw_color(0)
    pdf.line(origin_x, origin_y, origin_x + width, origin_y)
    pdf.line(origin_x, origin_y, origin_x, origin_y - height)
    for impeller, colour, drop in (("Impeller A 215 mm", BLUE, 24.0), ("Impeller B 190 mm", RED, 30.0)):
        peak = 52.0 if colour == BLUE else 40.0
        pdf.set_draw_color(*colour)
        pdf.set_line_width(0.6)
        points = [(origin_x + x * width / 20, origin_y - peak + drop * (x / 20) ** 2) for x in range(21)]
        pdf.polyline(points)
        _text(pdf, origin_x + width - 38, points[-1][1] - 2, impeller)
    for step in range(6):
        _text(pdf, origin_x + step * width / 5 - 3, origin_y + 4, str(step * 10))
        _text(pdf, origin_x - 9, origin_y - step * height / 5 + 1, str(step * 14))
    _text(pdf, origin_x + width / 2 - 12, origin_y + 9, "Flow in m3/h")
    _text(pdf, origin_x - 12, origin_y - height - 3, "Head in m")


def foundation_plan(pdf: FPDF, left: float, top: float) -> None:
    """Draw the base frame from above, with anchor bolts and dimensions."""
    _style(pdf)
    pdf.rect(left + 10, top + 10, 120, 46)
    pdf.rect(left + 18, top + 16, 104, 34)
    for x in (22, 70, 118):
        for y in (20, 46):
            pdf.circle(left + x, top + y, 2)
            pdf.line(left + x - 3.5, top + y, left + x + 3.5, top + y)
            pdf.line(left + x, top + y - 3.5, left + x, top + y + 3.5)
    pdf.set_draw_color(*BLUE)
    _dimension(pdf, (left + 22, top + 64), 96, "960 mm")
    pdf.line(left + 4, top + 20, left + 4, top + 46)
    _text(pdf, left - 8, top + 34, "260")
    _text(pdf, left + 52, top + 35, "6 anchor bolts M16")


def bar_chart(pdf: FPDF, left: float, top: float, bars: tuple[tuple[str, float], ...]) -> None:
    """Draw a labelled bar for each value, scaled to the largest value."""
    _style(pdf)
    origin_y, height = top + 52, 44
    largest = max(value for _, value in bars)
    pdf.line(left, origin_y, left + 128, origin_y)
    for index, (name, value) in enumerate(bars):
        x = left + 8 + index * 30
        tall = height * value / largest
        pdf.set_fill_color(*BLUE)
        pdf.rect(x, origin_y - tall, 18, tall, style="F")
        _text(pdf, x, origin_y - tall - 1.5, f"{value:.1f}")
        _text(pdf, x - 2, origin_y + 4.5, name)


def _dimension(pdf: FPDF, start: tuple[float, float], length: float, label: str) -> None:
    x, y = start
    pdf.line(x, y, x + length, y)
    pdf.line(x, y - 2, x, y + 2)
    pdf.line(x + length, y - 2, x + length, y + 2)
    _text(pdf, x + length / 2 - 6, y - 1, label)


def _arrow(pdf: FPDF, x: float, y: float, length: float) -> None:
    pdf.line(x, y, x + length, y)
    pdf.polygon([(x + length, y), (x + length - 2, y - 1.2), (x + length - 2, y + 1.2)], style="DF")


def _style(pdf: FPDF) -> None:
    pdf.set_draw_color(0)
    pdf.set_fill_color(0)
    pdf.set_line_width(0.35)
    pdf.set_font(FONT, "", 8)


def _text(pdf: FPDF, x: float, y: float, text: str) -> None:
    pdf.set_font(FONT, "", 8)
    pdf.text(x, y, text)
