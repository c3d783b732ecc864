"""Sample document: a price list with little text and one long table."""

from samples.elements import Document, Heading, Paragraph, Table

PRICE_LIST = Document(
    title="Price List 2025",
    author="Ingrid Solheim",
    date="2024-12-02",
    details=("Fernhill Pumpworks, Sales", "Author: Ingrid Solheim, Sales", "Valid from 1 January 2025"),
    title_page=False,
    elements=(
        Heading(1, "1 Pumps and spare parts"),
        Table(
            "Prices in euros, without value added tax",
            (
                ("Article", "Description", "Price", "Delivery"),
                ("H400-A", "Heron 400 with impeller A", "8,940", "6 weeks"),
                ("H400-B", "Heron 400 with impeller B", "7,620", "6 weeks"),
                ("H250-A", "Heron 250 with impeller A", "5,180", "4 weeks"),
                ("K120", "Kestrel 120 dosing pump", "2,310", "3 weeks"),
                ("K120-X", "Kestrel 120 for acids", "2,980", "8 weeks"),
                ("400-SK-2", "Seal kit for Heron 400", "214", "1 week"),
                ("400-BR-1", "Set of bearings for Heron 400", "168", "1 week"),
                ("400-CI-5", "Coupling insert for Heron 400", "39", "2 days"),
                ("400-RV-7", "Relief valve for Heron 400", "322", "2 weeks"),
            ),
            (16, 48, 16, 20),
        ),
        Heading(2, "1.1 Discounts"),
        Paragraph(
            "From 5 pumps in one order a discount of 4 percent is granted, from 20 pumps 9 percent. There is "
            "no discount on spare parts."
        ),
        Heading(2, "1.2 Terms of payment"),
        Paragraph(
            "Invoices are due within 30 days. Payment within 8 days earns a cash discount of 2 percent."
        ),
    ),
)
