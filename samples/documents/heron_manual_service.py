"""The second half of the Heron 400 manual: maintenance, faults, safety, spare parts and disposal."""

from samples.elements import Bullets, Heading, Paragraph, Picture, Table
from samples.pictures import worn_seal

MAINTENANCE = (
    Heading(1, "7 Maintenance"),
    Paragraph(
        "Only trained fitters may maintain the pump. Before any work, switch off the main switch, lock "
        "it with a padlock, and wait until the casing has cooled to below 40 degrees Celsius."
    ),
    Table(
        "Maintenance schedule",
        (
            ("Interval", "Work", "Who"),
            ("Daily", "Check for leaks and unusual noise", "Operator"),
            ("Every 500 hours", "Check the alignment of the coupling", "Fitter"),
            ("Every 2000 hours", "Grease the bearings with 12 g of grease KP2K", "Fitter"),
            ("Every 4000 hours", "Replace the mechanical seal", "Fitter"),
            ("Every 8000 hours", "Replace the bearings and the coupling insert", "Fitter"),
        ),
        (24, 56, 20),
    ),
    Heading(2, "7.1 Greasing the bearings"),
    Paragraph(
        "The bearings must be greased every 2000 operating hours with 12 g of lithium grease KP2K. Too much "
        "grease makes the bearings run hot. Wipe off what comes out at the vent."
    ),
    Heading(2, "7.2 Tightening torques"),
    Paragraph(
        "Tighten the casing screws M12 crosswise with 79 Nm, the flange screws M16 with 190 Nm, and the "
        "screws of the coupling guard with 10 Nm."
    ),
    Heading(1, "8 Replacing the mechanical seal"),
    Paragraph(
        "The mechanical seal is a wearing part. Replace it after 4000 operating hours, or earlier when more "
        "than 5 drops per minute leak. The seal kit has part number 400-SK-2."
    ),
    Picture("Worn seal face with radial scoring: replace the seal", worn_seal, width_mm=95),
    Bullets(
        (
            "Drain the casing and remove the coupling guard and the coupling insert.",
            "Remove the bearing bracket with the impeller. It weighs 38 kg: use a hoist.",
            "Pull the old seal off the shaft. Clean the shaft, but never with emery cloth.",
            "Push the new seal on with soapy water. Oil or grease destroys the elastomers.",
            "Turn the shaft by hand. It must turn freely before the guard is put back.",
        )
    ),
)

FAULTS = (
    Heading(1, "9 Faults"),
    Table(
        "Faults, causes and remedies",
        (
            ("Fault", "Cause", "Remedy"),
            ("No pressure", "Air in the casing", "Vent at plug H2"),
            ("Pressure too low", "Wrong direction of rotation", "Swap two phases of the motor"),
            ("Bearing too hot", "Too much grease", "Remove grease, check again after 2 hours"),
            ("Strong vibration", "Coupling misaligned", "Align to within 0.1 mm"),
            ("Motor trips", "Overload, liquid too viscous", "Throttle the pressure valve"),
        ),
        (26, 34, 40),
    ),
    Paragraph(
        "If a fault is not in this table, note the fault code on the display and call the service of "
        "Fernhill Pumpworks. Fault code E17 means that the bearing temperature sensor is broken."
    ),
)

SAFETY = (
    Heading(1, "10 Safety"),
    Paragraph(
        "DANGER: Rotating parts can catch clothing and hair. Never run the pump without its coupling guard."
    ),
    Paragraph(
        "WARNING: Surfaces can be hot. The casing reaches the temperature of the liquid. Wear gloves of "
        "protection class 2 or better."
    ),
    Paragraph(
        "WARNING: Electric shock. Only electricians may open the terminal box. Wait 5 minutes after "
        "switching off, because the frequency converter holds a dangerous charge."
    ),
    Heading(2, "10.1 Emergency stop"),
    Paragraph(
        "Press the red mushroom button on the control panel. The motor coasts to a stop within 8 "
        "seconds. The emergency stop does not switch off the supply of the frequency converter."
    ),
    Heading(2, "10.2 Protective equipment"),
    Bullets(
        (
            "Safety shoes whenever the pump is moved.",
            "Safety glasses whenever the casing is opened.",
            "Hearing protection during stays of more than one hour beside the running pump.",
        )
    ),
)

PARTS_AND_DISPOSAL = (
    Heading(1, "11 Spare parts"),
    Table(
        "Spare parts",
        (
            ("Part number", "Part", "Pieces"),
            ("400-SK-2", "Seal kit", "1"),
            ("400-BR-1", "Set of bearings", "1"),
            ("400-CI-5", "Coupling insert", "1"),
            ("400-IM-A", "Impeller A, 215 mm", "1"),
            ("400-IM-B", "Impeller B, 190 mm", "1"),
            ("400-RV-7", "Relief valve V1", "1"),
        ),
        (30, 50, 20),
    ),
    Paragraph("Spare parts are delivered for at least 12 years after the last machine of a series."),
    Heading(1, "12 Storage and disposal"),
    Paragraph(
        "Store the pump dry and free of vibration. Turn the shaft by hand once a month, so that the bearings "
        "do not stand in the same place. After more than 24 months in storage, replace the mechanical seal "
        "before the first start."
    ),
    Paragraph(
        "Separate metals, plastics and electronics for disposal. Hand used grease and oil to a collection "
        "point for hazardous waste."
    ),
)

SERVICE_CHAPTERS = (*MAINTENANCE, *FAULTS, *SAFETY, *PARTS_AND_DISPOSAL)
