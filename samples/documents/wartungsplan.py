"""Sample document: a maintenance plan in German, the only sample that is not in English."""

from samples.elements import Bullets, Document, Heading, Paragraph, Table

WARTUNGSPLAN = Document(
    title="Wartungsplan Kestrel 120",
    author="Jürgen Hölzl",
    date="2024-09-30",
    details=(
        "Fernhill Pumpworks, Werk Nord",
        "Verfasser: Jürgen Hölzl, Instandhaltung",
        "Ausgabe vom 30. September 2024",
    ),
    language="de",
    title_page=False,
    elements=(
        Heading(1, "1 Übersicht"),
        Paragraph(
            "Dieser Plan gilt für die Dosierpumpe Kestrel 120. Die Wartung darf nur von geschultem Personal "
            "durchgeführt werden. Vor allen Arbeiten ist die Pumpe drucklos zu machen und vom Netz zu "
            "trennen."
        ),
        Table(
            "Wartungsarbeiten",
            (
                ("Intervall", "Arbeit"),
                ("Täglich", "Dichtheit und Füllstand prüfen"),
                ("Alle 3 Monate", "Ventile reinigen"),
                ("Alle 6 Monate", "Membran ersetzen"),
                ("Jährlich", "Getriebeöl wechseln"),
            ),
            (35, 65),
        ),
        Heading(1, "2 Membran"),
        Paragraph(
            "Die Membran der Kestrel 120 muss alle 6 Monate oder nach 3000 Betriebsstunden ersetzt "
            "werden. Bei Säuren halbiert sich diese Frist. Die Schrauben des Dosierkopfs werden über "
            "Kreuz mit 4,5 Nm angezogen."
        ),
        Heading(1, "3 Getriebe"),
        Paragraph(
            "Das Getriebe fasst 0,35 Liter Öl der Sorte CLP 220. Das Öl wird einmal im Jahr gewechselt. "
            "Altöl ist getrennt zu sammeln und fachgerecht zu entsorgen."
        ),
        Bullets(
            (
                "Ablassschraube öffnen und das warme Öl vollständig ablassen.",
                "Dichtring ersetzen und die Schraube mit 12 Nm anziehen.",
                "Neues Öl bis zur Mitte des Schauglases einfüllen.",
            )
        ),
    ),
)
