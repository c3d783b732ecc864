"""Twenty questions about the samples with known answers. A test verifies the answers in the samples."""

from dataclasses import dataclass

MANUAL, GUIDE, PRICES = "heron-400-manual.pdf", "heron-400-installation-guide.pdf", "price-list-2025.pdf"
REPORT_2023, REPORT_2024 = "annual-report-2023.pdf", "annual-report-2024.pdf"
LEAVE, PLAN = "leave-policy.pdf", "wartungsplan-kestrel-120.pdf"
ONBOARDING, MINUTES, MEMO = "onboarding-guide.md", "minutes-safety-committee.txt", "memo-impeller-alloy.txt"


@dataclass(frozen=True)
class KnownAnswer:
    """A question with the text and the source that a correct answer must contain.

    Attributes:
        says: words of the answer, spelled as in the document.
        filename, page: source of the answer. `page` is None for texts without pages; both are None if the
            documents don't contain the answer.
    """

    text: str
    says: str = ""
    filename: str | None = None
    page: int | None = None


QUESTIONS = (
    KnownAnswer("What is the maximum operating pressure of the Heron 400?", "6.5 bar", MANUAL, 4),
    KnownAnswer("Above which pressure does the relief valve V1 open?", "7.2 bar", MANUAL, 4),
    KnownAnswer("How often must the bearings of the Heron 400 be greased?", "2000", MANUAL, 8),
    KnownAnswer("What does fault code E17 of the Heron 400 mean?", "temperature sensor", MANUAL, 10),
    KnownAnswer("How heavy is the bearing bracket with the impeller?", "38 kg", MANUAL, 9),
    KnownAnswer("How thick must the foundation of the Heron 400 be?", "150 mm", GUIDE, 3),
    KnownAnswer("How is the fuse for impeller A rated?", "32 A", GUIDE, 5),
    KnownAnswer("What was the revenue in 2024?", "53.7 million", REPORT_2024, 2),
    KnownAnswer("What was the operating profit in 2023?", "3.9 million", REPORT_2023, 2),
    KnownAnswer("How many employees did Fernhill Pumpworks have at the end of 2024?", "329", REPORT_2024, 3),
    KnownAnswer("How much electricity did the works consume in 2023?", "6820 MWh", REPORT_2023, 3),
    KnownAnswer("What revenue is expected for 2025?", "57 million", REPORT_2024, 4),
    KnownAnswer("How many weeks of paid parental leave are granted?", "18 weeks", LEAVE, 1),
    KnownAnswer("Within how many days are invoices due?", "30 days", PRICES, 1),
    KnownAnswer("Wie viel Liter Öl fasst das Getriebe der Kestrel 120?", "0,35 Liter", PLAN, 1),
    KnownAnswer("When does the core time begin?", "9:30", ONBOARDING),
    KnownAnswer("How long did the fire drill on 6 March take?", "7 minutes", MINUTES),
    KnownAnswer("What is the internal name of the project with the new alloy?", "Saltmarsh", MEMO),
    KnownAnswer("What does the canteen serve on Fridays?"),
    KnownAnswer("How many moons does the planet Jupiter have?"),
)
