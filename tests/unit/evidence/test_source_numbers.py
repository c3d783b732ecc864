"""Tests for the check of numbers in cited statements against the cited documents."""

import random
import re
from datetime import date

import pytest

from shared.evidence.source_numbers import SourceNumbers, unsourced_numbers

TODAY = date(2026, 11, 29)
POLICY = (
    "3.3 For flood the excess is GBP 25,000, or GBP 15,000 if flood barriers certified to BS 851188 were "
    "deployed within 4 hours. The premium rose by 3.5 % to 1,234,567 pounds on 14 March 2025."
)


def unsourced(statement: str, source: str = POLICY, language: str = "en") -> list[str]:
    return unsourced_numbers(statement, [SourceNumbers.of([source], language)], language, TODAY)


@pytest.mark.parametrize(
    "statement",
    [
        "The excess is GBP 25,000, or GBP 15,000 with barriers to BS 851188.",
        "The excess is 25000 pounds.",
        "The premium rose by 3.5 percent to about 1.2 million pounds.",
        "The premium is 1.23 million, or 1,235 thousand pounds.",
        "On 14.03.2025 the premium rose; so it did on 2025-03-14 and on 3/14/2025.",
        "1. The barriers must stand within four hours.",
        "| 2 | The excess is 25,000 |",
        "Today, 29 November 2026, the excess is 25,000 pounds.",
        "Section 3.3 has 1 rule and 0 exceptions.",
        "Without a number, nothing is compared; two exceptions are words.",
    ],
)
def test_numbers_of_the_source_are_accepted(statement: str) -> None:
    assert unsourced(statement) == []


@pytest.mark.parametrize(
    ("statement", "numbers"),
    [
        ("The excess is GBP 24,000, or GBP 15,000 with barriers.", ["24,000"]),
        ("Both excesses together are 40,000 pounds; 40,000 is much.", ["40,000"]),
        ("The premium rose by 3.6 % to 1.3 million pounds.", ["3.6 %", "1.3 million"]),
        ("The premium is 1,234,568 pounds.", ["1,234,568"]),
        ("On 17.03.2025 the premium rose, not on 2025-03-16 or 3/14/2023.", ["17", "16", "2023"]),
        ("The barriers must stand within 5 hours.", ["5"]),
        ("1. The barriers must stand within 6 hours.", ["6"]),
    ],
)
def test_other_numbers_are_reported_once_as_written(statement: str, numbers: list[str]) -> None:
    assert unsourced(statement) == numbers


@pytest.mark.parametrize(
    ("statement", "source", "language"),
    [
        ("The price is 2,400.50 euros.", "Der Preis beträgt 2.400,50 EUR.", "en"),
        ("Der Preis beträgt 2.400 EUR.", "The price is EUR 2,400.", "de"),
        ("The price is 2,400 euros.", "Der Preis beträgt 2.400 EUR.", "en"),
        ("Le prix est de 16 500 €.", "The price is 16,500 euros.", "fr"),
        ("The notice period is 3 months.", "Die Frist beträgt drei Monate.", "en"),
        ("The notice period is 3 months.", "Le préavis est de trois mois.", "en"),
        ("Die Frist beträgt 30 Tage.", "Payment is due within thirty days.", "de"),
        ("The share is 34 %.", "| share | 0.34 |", "en"),
        ("Revenue was 53.7 million euros.", "| Revenue (EUR thousand) | 53,700 |", "en"),
        ("Umsatz: 1,2 Mrd. EUR", "Revenue was 1.2 billion euros.", "de"),
        ("The tag A-200 is on the pump.", "Pump A-200 has a tag.", "en"),
    ],
)
def test_numbers_are_recognised_in_other_notations(statement: str, source: str, language: str) -> None:
    assert unsourced(statement, source, language) == []


def test_a_source_without_numbers_contains_none() -> None:
    assert unsourced("It weighs 312 kg.", "The weight is stated elsewhere.") == ["312"]


def test_changed_digits_are_found() -> None:
    """Of 400 statements with one changed digit, nine in ten are found; the others agree by chance."""
    statement = "The excess is GBP 25,000, or GBP 15,000; the premium of 1,234,567 pounds rose by 3.5 %."
    chance = random.Random(7)
    places = [digit.start() for digit in re.finditer(r"\d", statement)]
    found = 0
    for _ in range(400):
        place = chance.choice(places)
        digit = chance.choice([digit for digit in "123456789" if digit != statement[place]])
        found += bool(unsourced(statement[:place] + digit + statement[place + 1 :]))
    assert found >= 360
