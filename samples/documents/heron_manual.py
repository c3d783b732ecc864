"""Sample document: the operating manual for a process pump, with pictures, drawings and tables."""

from samples.documents.heron_manual_service import SERVICE_CHAPTERS
from samples.drawings import hydraulic_circuit, performance_curve
from samples.elements import Bullets, Document, Drawing, Heading, Paragraph, Picture, Table
from samples.pictures import control_panel, pump_photo

INTRODUCTION = (
    Heading(1, "1 About this manual"),
    Paragraph(
        "This manual describes the Heron 400 process pump from delivery to disposal. It is written for the "
        "people who operate and maintain the pump: machine operators, fitters and electricians. Keep it next "
        "to the machine, and hand it on when the machine is sold."
    ),
    Heading(2, "1.1 Intended use"),
    Paragraph(
        "The Heron 400 moves clean or slightly turbid liquids with a temperature between 5 and 90 degrees "
        "Celsius. It must not be used for flammable liquids, for drinking water, or for liquids with solids "
        "larger than 3 mm. Any other use is improper, and Fernhill Pumpworks accepts no liability for it."
    ),
    Heading(2, "1.2 Signal words"),
    Table(
        "Signal words and what they mean",
        (
            ("Signal word", "Meaning"),
            ("DANGER", "Death or serious injury will follow if the instruction is ignored."),
            ("WARNING", "Death or serious injury may follow if the instruction is ignored."),
            ("CAUTION", "Minor injury may follow if the instruction is ignored."),
            ("NOTICE", "Damage to the machine may follow if the instruction is ignored."),
        ),
        (25, 75),
    ),
)

DESCRIPTION = (
    Heading(1, "2 Description"),
    Paragraph(
        "The Heron 400 is a single-stage centrifugal pump with a mechanical seal. Pump and motor stand on a "
        "common base frame and are joined by an elastic coupling, which a yellow guard covers."
    ),
    Picture("The Heron 400 with motor, coupling guard and flanges", pump_photo),
    Heading(2, "2.1 Main parts"),
    Bullets(
        (
            "The casing is made of grey cast iron and carries the suction flange DN 80 and the pressure "
            "flange DN 65.",
            "The impeller is made of bronze. Impeller A has a diameter of 215 mm, impeller B of 190 mm.",
            "The mechanical seal is a single seal with faces of silicon carbide.",
            "The motor is a four-pole induction motor of efficiency class IE4.",
        )
    ),
)

SPECIFICATIONS = (
    Heading(1, "3 Technical data"),
    Heading(2, "3.1 Limits of operation"),
    Paragraph(
        "The maximum operating pressure of the Heron 400 is 6.5 bar. Above 7.2 bar the relief valve V1 opens "
        "and returns the liquid to the tank. Never block the relief valve."
    ),
    Table(
        "Technical data of the Heron 400",
        (
            ("Property", "Impeller A", "Impeller B"),
            ("Nominal flow", "42 m3/h", "34 m3/h"),
            ("Maximum head", "65 m", "50 m"),
            ("Rated power of the motor", "11 kW", "7.5 kW"),
            ("Nominal speed", "1450 rpm", "1450 rpm"),
            ("Weight without liquid", "186 kg", "171 kg"),
            ("Sound pressure level at 1 m", "71 dB(A)", "68 dB(A)"),
            ("Degree of protection", "IP55", "IP55"),
        ),
        (46, 27, 27),
    ),
    Heading(2, "3.2 Ambient conditions"),
    Paragraph(
        "The pump works at ambient temperatures between 0 and 40 degrees Celsius and at heights of up to "
        "1000 m above sea level. The relative humidity must not exceed 85 percent."
    ),
)

HYDRAULICS = (
    Heading(1, "4 Hydraulic circuit"),
    Paragraph(
        "Liquid flows from tank T1 through pump P1 and check valve V2 to the consumer C1. The check valve "
        "keeps the liquid column from falling back when the motor stops. The relief valve V1 protects the "
        "circuit against overpressure."
    ),
    Drawing("Hydraulic circuit with relief valve V1 and check valve V2", hydraulic_circuit, 62),
    Paragraph(
        "Gauge G1 shows the pressure behind the pump. In normal operation it reads between 4.5 and 6.0 bar."
    ),
    Heading(1, "5 Performance"),
    Paragraph(
        "The curves hold for water at 20 degrees Celsius and 1450 rpm. The best efficiency of impeller A is "
        "78 percent, at a flow of 40 m3/h. Do not run the pump below 8 m3/h for more than two minutes, "
        "because the liquid in the casing heats up."
    ),
    Drawing("Head over flow for impellers A and B", performance_curve, 74),
)

OPERATION = (
    Heading(1, "6 Operation"),
    Heading(2, "6.1 Control panel"),
    Picture("Control panel with display, lamps and emergency stop", control_panel),
    Paragraph(
        "The display alternates between pressure and bearing temperature. The lamp WARN lights up when the "
        "bearing temperature exceeds 75 degrees Celsius. At 90 degrees Celsius the control system stops the "
        "motor and the lamp TRIP lights up."
    ),
    Heading(2, "6.2 Starting"),
    Bullets(
        (
            "Open the suction valve completely and the pressure valve by a quarter.",
            "Vent the casing at plug H2 until liquid comes out without bubbles.",
            "Press START and watch gauge G1. If the pressure does not rise within 10 seconds, press STOP.",
            "Open the pressure valve slowly until the nominal flow is reached.",
        )
    ),
    Heading(2, "6.3 Stopping"),
    Paragraph(
        "Close the pressure valve, press STOP, and close the suction valve. If frost is to be expected, "
        "drain the casing at plug H3."
    ),
)

HERON_MANUAL = Document(
    title="Heron 400 Process Pump: Operating Manual",
    author="Mara Lindqvist",
    date="2024-03-18",
    details=(
        "Fernhill Pumpworks",
        "Author: Mara Lindqvist, Engineering",
        "Document HM-400-07, edition of 18 March 2024",
    ),
    elements=(*INTRODUCTION, *DESCRIPTION, *SPECIFICATIONS, *HYDRAULICS, *OPERATION, *SERVICE_CHAPTERS),
)
