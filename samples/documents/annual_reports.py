"""Sample documents: two annual reports with the same structure and different numbers, for comparisons."""

from dataclasses import dataclass
from functools import partial

from samples.drawings import bar_chart
from samples.elements import Document, Drawing, Element, Heading, Paragraph, Table


@dataclass(frozen=True)
class Year:
    """The figures of one business year. Amounts are in million euros."""

    year: int
    date: str
    revenue: float
    profit: float
    employees: int
    pumps_sold: int
    export_percent: int
    energy_mwh: int
    accidents: int
    regions: tuple[tuple[str, float], ...]
    remark: str
    outlook: str


def annual_report(figures: Year) -> Document:
    """Return the annual report with the figures of one year."""
    return Document(
        title=f"Fernhill Pumpworks: Annual Report {figures.year}",
        author="Tobias Renner",
        date=figures.date,
        details=(
            f"Business year {figures.year}",
            "Author: Tobias Renner, Finance",
            f"Published on {figures.date}",
        ),
        elements=(*_business(figures), *_people(figures), *_outlook(figures)),
    )


def _business(figures: Year) -> tuple[Element, ...]:
    return (
        Heading(1, "1 Business development"),
        Paragraph(
            f"Revenue in {figures.year} was {figures.revenue:.1f} million euros. The operating profit in "
            f"{figures.year} was {figures.profit:.1f} million euros. {figures.remark}"
        ),
        Table(
            f"Key figures {figures.year}",
            (
                ("Key figure", str(figures.year)),
                ("Revenue", f"{figures.revenue:.1f} million euros"),
                ("Operating profit", f"{figures.profit:.1f} million euros"),
                ("Pumps sold", f"{figures.pumps_sold}"),
                ("Export share", f"{figures.export_percent} percent"),
                ("Employees at the end of the year", f"{figures.employees}"),
            ),
            (60, 40),
        ),
        Heading(2, "1.1 Regions"),
        Paragraph(
            f"In {figures.year} the export share was {figures.export_percent} percent of revenue. The figure "
            "shows the revenue of each region in million euros."
        ),
        Drawing(f"Revenue by region in {figures.year}", partial(bar_chart, bars=figures.regions), 60),
    )


def _people(figures: Year) -> tuple[Element, ...]:
    return (
        Heading(1, "2 People and environment"),
        Heading(2, "2.1 Employees"),
        Paragraph(
            f"At the end of {figures.year} Fernhill Pumpworks had {figures.employees} employees. There were "
            f"{figures.accidents} accidents at work that led to absence."
        ),
        Heading(2, "2.2 Energy"),
        Paragraph(
            f"The works consumed {figures.energy_mwh} MWh of electricity in {figures.year}. The solar "
            "plant on the roof of hall 3 delivered a part of it."
        ),
    )


def _outlook(figures: Year) -> tuple[Element, ...]:
    return (Heading(1, "3 Outlook"), Paragraph(figures.outlook))


ANNUAL_REPORT_2023 = annual_report(
    Year(
        year=2023,
        date="2024-02-29",
        revenue=48.2,
        profit=3.9,
        employees=312,
        pumps_sold=5140,
        export_percent=54,
        energy_mwh=6820,
        accidents=7,
        regions=(("Europe", 29.4), ("Asia", 10.8), ("Americas", 6.1), ("Africa", 1.9)),
        remark="A shortage of bronze castings delayed deliveries in the second quarter.",
        outlook="For 2024 we expect revenue of about 52 million euros. The Heron 400 will be delivered from "
        "April 2024 on.",
    )
)
ANNUAL_REPORT_2024 = annual_report(
    Year(
        year=2024,
        date="2025-02-27",
        revenue=53.7,
        profit=5.1,
        employees=329,
        pumps_sold=5655,
        export_percent=58,
        energy_mwh=6410,
        accidents=4,
        regions=(("Europe", 30.9), ("Asia", 13.5), ("Americas", 7.0), ("Africa", 2.3)),
        remark="The Heron 400 contributed 6.3 million euros in its first nine months.",
        outlook="For 2025 we expect revenue of about 57 million euros. A second assembly line for the Heron "
        "series will be built in hall 2.",
    )
)
