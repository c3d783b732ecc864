"""Documents that say different things of the same."""

from datetime import UTC, datetime

import pytest

from shared.evidence.citations import describe, find_conflicts, is_named
from shared.evidence.models import Citation, Conflict


def citation(n: int, doc_id: str, quote: str, *, verified: bool = True) -> Citation:
    return Citation(
        n=n,
        doc_id=doc_id,
        block_id=f"{doc_id}-1",
        filename=f"{doc_id}.pdf",
        page_number=1,
        quote=quote,
        verified=verified,
        url="u",
    )


def between(one: str, other: str) -> list[Conflict]:
    return find_conflicts([citation(1, "a", one), citation(2, "b", other)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The maximum pressure of the pump is 15 bar.", "The maximum pressure of the pump is 16 bar."),
        ("Der maximale Druck der Pumpe ist 15 bar.", "Der maximale Druck der Pumpe ist 16,5 bar."),
        ("Visitors may enter the hall alone.", "Visitors may not enter the hall alone."),
        ("Der Antrag wird von der Abteilung geprüft.", "Der Antrag wird von der Abteilung nicht geprüft."),
        ("The budget of the team is 1 200 000 euros.", "The budget of the team is 1 300 000 euros."),
    ],
)
def test_other_numbers_or_a_denial_of_the_same_conflict(one: str, other: str) -> None:
    assert between(one, other) == [Conflict(first=1, second=2)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The maximum pressure of the pump is 15 bar.", "The  maximum pressure of the pump is 15 bar."),
        ("The maximum pressure of the pump is 15 bar.", "The weight of the crane is 900 kg."),
        (
            "In 2023 the revenue of the group was 48 million.",
            "In 2024 the revenue of the group was 53 million.",
        ),
        ("The maximum pressure of the X200 is 15 bar.", "The maximum pressure of the X300 is 20 bar."),
        ("15 bar", "16 bar"),
    ],
)
def test_other_things_years_and_products_do_not(one: str, other: str) -> None:
    assert between(one, other) == []


def test_one_document_does_not_conflict_with_itself_and_captions_prove_nothing() -> None:
    one, other = "The maximum pressure of the pump is 15 bar.", "The maximum pressure of the pump is 16 bar."
    assert find_conflicts([citation(1, "a", one), citation(2, "a", other)]) == []
    assert find_conflicts([citation(1, "a", one), citation(2, "b", other, verified=False)]) == []


def test_what_one_line_cites_is_named() -> None:
    conflict = Conflict(first=1, second=2)
    assert is_named(conflict, "| old (Source: a.pdf)[1] | new (Source: b.pdf)[2] |")
    assert not is_named(conflict, "Old (Source: a.pdf)[1].\nNew (Source: b.pdf)[2].")
    assert not is_named(conflict, "Old [1] and [12].")


def test_the_description_names_both_with_their_dates_and_leads_nowhere() -> None:
    sides = [citation(1, "a", "See [x](https://evil) 15 bar"), citation(2, "b", "y " * 200)]
    said = describe(Conflict(first=1, second=2), sides, {"a": datetime(2023, 5, 1, tzinfo=UTC)})
    assert said.startswith("“See x 15 bar” (Source: a.pdf, S. 1)[1], 2023-05-01; “y y")
    assert said.endswith("…” (Source: b.pdf, S. 1)[2]")
