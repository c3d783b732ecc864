"""Sample document: an installation guide for the pump, with short chapters, numbers and a foundation plan."""

from samples.drawings import foundation_plan
from samples.elements import Bullets, Document, Drawing, Heading, Paragraph, Table

INSTALLATION_GUIDE = Document(
    title="Heron 400: Installation Guide",
    author="Mara Lindqvist",
    date="2024-04-09",
    details=(
        "Fernhill Pumpworks",
        "Author: Mara Lindqvist, Engineering",
        "Document IG-400-02, edition of 9 April 2024",
    ),
    elements=(
        Heading(1, "1 Transport"),
        Paragraph(
            "The pump is delivered on a wooden pallet. Lift it only at the two eye bolts of the base frame. "
            "The eye bolt of the motor carries the motor alone, not the whole machine."
        ),
        Heading(1, "2 Foundation"),
        Paragraph(
            "The foundation must be a concrete slab of at least 150 mm thickness. Six anchor bolts M16 hold "
            "the base frame. Let the concrete harden for 7 days before the machine is put on it."
        ),
        Drawing("Foundation plan with six anchor bolts", foundation_plan, 72),
        Paragraph("Level the base frame to within 0.5 mm per metre, then fill the gap with grout."),
        Heading(1, "3 Pipes"),
        Bullets(
            (
                "The suction pipe must rise steadily towards the pump, so that no air is trapped.",
                "Support the pipes close to the flanges. The pump must not carry their weight.",
                "Flush the pipes before they are connected. Welding beads destroy the mechanical seal.",
            )
        ),
        Heading(1, "4 Electrical connection"),
        Paragraph(
            "The motor is connected to 400 V, three phases, 50 Hz. Use a cable of 4 x 6 mm2 for impeller "
            "A and of 4 x 4 mm2 for impeller B. The fuse is rated at 32 A for impeller A."
        ),
        Table(
            "Fuses and cables",
            (
                ("Impeller", "Cable", "Fuse"),
                ("A", "4 x 6 mm2", "32 A"),
                ("B", "4 x 4 mm2", "25 A"),
            ),
            (30, 40, 30),
        ),
        Heading(1, "5 First start"),
        Paragraph(
            "Check the direction of rotation with the coupling insert removed. Seen from the motor fan, the "
            "shaft turns clockwise. After the first 24 hours, check the alignment of the coupling again."
        ),
    ),
)
