"""Questions about the samples, grouped by the kind of work that they cause."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["comparison", "summary", "evidence", "open", "fact", "foreign"]
DELEGATED: tuple[Kind, ...] = ("comparison", "summary", "evidence", "open")
"""Kinds that a policy with the defaults sets sub-agents to work for, or may."""


@dataclass(frozen=True)
class Question:
    """A question that the sample user Anna asks."""

    kind: Kind
    text: str


_TEXTS: dict[Kind, tuple[str, ...]] = {
    "comparison": (
        "Compare the revenue in the annual report 2023 and the annual report 2024.",
        "Compare the energy consumption in the annual report 2023 with that in the annual report 2024.",
        "What changed between the annual report 2023 and the annual report 2024?",
        "How do the Heron 400 manual and the Heron 400 installation guide differ on the foundation?",
        "Compare the Heron 400 manual with the maintenance plan of the Kestrel 120 on greasing.",
        "Vergleiche den Geschäftsbericht 2023 mit dem Geschäftsbericht 2024 beim Umsatz.",
    ),
    "summary": (
        "Summarise the Heron 400 installation guide.",
        "Summarise the annual report 2024.",
        "Give me a summary of the onboarding guide.",
        "Summarise the minutes of the safety committee.",
        "Summarise the Heron 400 manual.",
    ),
    "evidence": (
        "Show me the proof that the export share rose from 2023 to 2024.",
        "Which passage says how often the bearings of the Heron 400 must be greased?",
        "What is the evidence that the fire drill took too long?",
        "Quote the sentence on the fuse for impeller A.",
    ),
    "open": (
        "What do we know about noise in hall 3?",
        "Tell me everything about the mechanical seal of the Heron 400.",
        "What are the risks when the Heron 400 is maintained?",
    ),
    "fact": (
        "What is the maximum operating pressure of the Heron 400?",
        "How thick must the foundation of the Heron 400 be?",
        "When does the core time begin?",
        "How many employees did Fernhill Pumpworks have at the end of 2024?",
        "Which documents were written by Tobias Renner?",
        "List all documents.",
    ),
    "foreign": (
        "What does the canteen serve on Fridays?",
        "How many moons does the planet Jupiter have?",
    ),
}
QUESTIONS: tuple[Question, ...] = tuple(
    Question(kind, text) for kind, texts in _TEXTS.items() for text in texts
)
