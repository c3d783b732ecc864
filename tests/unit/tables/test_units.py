"""Tests for units in lines above tables."""

import pytest

from shared.evidence.number_words import words_of
from shared.tables.units import split_unit


@pytest.mark.parametrize(
    ("line", "language", "power"),
    [
        ("in k€", "de", 3),
        ("in T€", "de", 3),
        ("TEUR", "de", 3),
        ("in 1.000 EUR", "de", 3),
        ("in 1 000 EUR", "fr", 3),
        ("Mio. €", "de", 6),
        ("Beträge in Tsd. Euro", "de", 3),
        ("en milliers d'euros", "fr", 3),
        ("(en millions d’euros, sauf indication contraire)", "fr", 6),
        ("in thousands of US dollars", "en", 3),
        ("(Dollars in millions, except per share amounts)", "en", 6),
        ("$'000", "en", 3),
        ("€m", "en", 6),
        ("cifras en miles de euros", "es", 3),
        ("valori in migliaia di euro", "it", 3),
        ("em milhares de euros", "pt", 3),
        ("bedragen in duizenden euro's", "nl", 3),
        ("x € 1.000", "nl", 3),
        ("w tys. zł", "pl", 3),
        ("Belopp i tkr", "sv", 3),
        ("beløb i mio. kr.", "da", 6),
    ],
)
def test_a_unit_is_recognised_and_its_scale_is_known(line: str, language: str, power: int) -> None:
    title, unit = split_unit(line)
    assert (title, power in words_of(language).scales_named(unit)) == ("", True)


@pytest.mark.parametrize("line", ["in US dollars", "in %", "EUR", "kr.", "(in Prozent)"])
def test_a_unit_needs_no_scale(line: str) -> None:
    assert split_unit(line) == ("", line.strip("()"))


@pytest.mark.parametrize(
    ("line", "title", "unit"),
    [
        ("Sales by region (in k€)", "Sales by region", "in k€"),
        ("Umsatz nach Region, in T€", "Umsatz nach Region", "in T€"),
        ("Umsatz [Mio. €]:", "Umsatz", "Mio. €"),
        ("Top 1 000 Kunden in EUR", "Top 1000 Kunden", "in EUR"),
    ],
)
def test_a_title_is_separated_from_its_unit(line: str, title: str, unit: str) -> None:
    assert split_unit(line) == (title, unit)


_TITLES = ("Revenue in the US", "Miles", "m", "1.000 EUR", "Exposure to the Euro", "Sales in 2024", "US", "")


@pytest.mark.parametrize("line", _TITLES)
def test_other_lines_have_no_unit(line: str) -> None:
    assert split_unit(line) == (line, "")
