"""Tests for checking the numbers of a statement against the cited result."""

from datetime import date

import pytest

from shared.evidence.models import Cell, QueriedTable, TableResult
from shared.evidence.number_proof import has_number, numbers_of, unproved_numbers, without_date, without_rank

TABLE = QueriedTable(table_id="d.1", doc_id="d", filename="sales-2024.csv", content_hash="h")


def result(*rows: tuple[Cell, ...], columns: tuple[str, ...] = ("region", "total")) -> TableResult:
    return TableResult(
        sql="SELECT …",
        sql_in_words="The sum of revenue.",
        columns=columns,
        rows=rows,
        row_count=len(rows),
        constants=("2023-01-31",),
        tables=(TABLE,),
    )


SALES = result(("North", 1234567.0), ("South A-200", -300), ("West", 0.125), ("East", 9.5))

RIGHT = [
    ("en", "The North made 1,234,567 or 1.23 million, $1.2m, 1,235k."),
    ("de", "Der Norden: 1.234.567 €, 1.234.567,00 Euro, rund 1,23 Mio. oder 1.235 Tsd."),
    ("en", "The South fell by 300, which is -300; the balance was \u2212300."),
    ("de", "Im Süden ein Rückgang von 300."),
    ("en", "The West has 12.5 %, or 0.125; the East 9.5."),
    ("de", "Der Westen hat 12,5 % (0,125)."),
    ("en", "In 2023, on 31.01.2023 and on 2023-01-31, there were 4 regions, two of them large; see A-200."),
    ("en", "Of the 17 that you ask about, 40 % are new."),
    ("en", "1'234'567 and 1 234 567 and 1,234,567.00"),
    ("de", "1 234 567 und 1.234.567"),
    ("en", "About two thirds of all."),
]

WRONG = [
    ("en", "The North made 1,234,568.", ["1,234,568"]),
    ("en", "1.24 million", ["1.24 million"]),
    ("en", "The North made 1.23 billion.", ["1.23 billion"]),
    ("de", "Der Norden: 1,234 Mio. und 1.234 €", ["1,234 Mio", "1.234"]),
    ("en", "The balance was 300.", ["300"]),
    ("en", "The East has -9.5.", ["-9.5"]),
    ("en", "The West has 13.5 %.", ["13.5 %"]),
    ("en", "It was 9.4 in 2022.", ["9.4", "2022"]),
    ("en", "Twelve regions, five million euros.", ["Twelve", "five million"]),
    ("en", "| 5 | North | 1,234,567 |", ["5"]),
    ("en", "It is 9.5 % of it.", ["9.5 %"]),
]
QUESTION = ["What about the 17, and the 40 %?"]


@pytest.mark.parametrize(("language", "statement"), RIGHT)
def test_numbers_of_the_result_are_right_as_they_are_rounded(language: str, statement: str) -> None:
    assert unproved_numbers(statement, [SALES], QUESTION, language) == []


@pytest.mark.parametrize(("language", "statement", "wrong"), WRONG)
def test_other_numbers_are_wrong(language: str, statement: str, wrong: list[str]) -> None:
    numbers = unproved_numbers(without_rank(statement, 4), [SALES], QUESTION, language)
    assert numbers == wrong


@pytest.mark.parametrize(
    ("cell", "language", "statement", "wrong"),
    [
        (0.0, "en", "It made 0.", []),
        (0.0, "en", "It fell by -0.", ["-0"]),
        (0.5, "en", "It fell by -0.5.", ["-0.5"]),
        (9.6, "en", "Some 10.", []),
        (1234, "de-AT", "1.234", []),
        (1234.567, "en", "1,234.567", []),
        (1_234_567, "en", "1.234.567", []),
        (1_234_567, "en", "12.34.567", ["12.34.567"]),
    ],
)
def test_a_number_is_read_and_rounded_as_it_is_written(
    cell: float, language: str, statement: str, wrong: list[str]
) -> None:
    assert unproved_numbers(statement, [result(("North", cell))], (), language) == wrong


def test_a_number_of_three_parts_is_no_group_of_thousands() -> None:
    (number,) = numbers_of("1.2.3", "en")
    assert (str(number.value), number.places) == ("12.3", 1)


@pytest.mark.parametrize(
    ("statement", "wrong"),
    [
        ("There are 4.", []),
        ("Of 3.", ["3"]),
        ("All four, three of them large.", []),
        ("Of five.", ["five"]),
        ("It has 4 %.", ["4 %"]),
        ("It has 4 million.", ["4 million"]),
        ("It has -4.", ["-4"]),
    ],
)
def test_the_number_of_rows_counts_things(statement: str, wrong: list[str]) -> None:
    assert unproved_numbers(statement, [SALES], (), "en") == wrong


def test_the_number_of_rows_that_were_fetched_of_more_says_nothing() -> None:
    cut = SALES.model_copy(update={"truncated": True})
    assert unproved_numbers("There are 4.", [cut], (), "en") == ["4"]


def test_numbers_inside_names_are_known_without_a_sign_and_up_to_a_length() -> None:
    names = ("q3_2019", "A1234567890123456789", "B12345678901234567890")
    table = result(("North", 9.5), columns=names)
    assert unproved_numbers("In 2019, of 1234567890123456789.", [table], (), "en") == []
    assert unproved_numbers("It is -2019, of 12345678901234567890.", [table], (), "en") == [
        "-2019",
        "12345678901234567890",
    ]


def test_a_share_is_stored_as_a_fraction_or_a_percentage() -> None:
    for share in (0.125, 12.5):
        assert (
            unproved_numbers("It has 12.5 %.", [result(("West", share), columns=("a", "share"))], (), "en")
            == []
        )


def test_a_column_in_millions_says_so() -> None:
    in_millions = result(("North", 5.2), columns=("region", "revenue_eur_million"))
    assert unproved_numbers("It is 5.2 million euros.", [in_millions], (), "en") == []
    assert unproved_numbers("It is 5.2 million euros.", [result(("North", 5.2))], (), "en")


def test_what_was_calculated_as_a_percentage_is_called_so() -> None:
    assert not unproved_numbers(
        "It grew by 9.5 %.", [result(("North", 9.5), columns=("a", "growth_pct"))], (), "en"
    )


@pytest.mark.parametrize("spent", [(82.5, 115.9), (0.825, 1.159)])
def test_a_percentage_may_be_told_by_its_distance_from_the_whole(spent: tuple[float, float]) -> None:
    budgets = result(("North", spent[0]), ("South", spent[1]), columns=("region", "percent_of_budget"))
    right = "The North spent 17.5 % less than planned; the South exceeded its budget by 15.9 %."
    assert unproved_numbers(right, [budgets], (), "en") == []
    wrong = "The North spent 17.5 % more than planned, the South 16.9 %."
    assert unproved_numbers(wrong, [budgets], (), "en") == ["17.5 %", "16.9 %"]
    near = result(("North", 100.175), columns=("region", "percent_of_budget"))
    assert unproved_numbers("It exceeded its budget by 17.5 %.", [near], (), "en") == ["17.5 %"]
    plain = result(("North", spent[0]), columns=("region", "total"))
    assert unproved_numbers("It spent 17.5 % less.", [plain], (), "en") == ["17.5 %"]


@pytest.mark.parametrize("grown", [249.5, 2.495])
@pytest.mark.parametrize(
    ("language", "times"),
    [
        ("en", "{} times"),
        ("en", "{}-fold"),
        ("en", "{}x"),
        ("en", "a factor of {}"),
        ("de", "{}-mal"),
        ("de", "das {}-Fache"),
        ("de", "Faktor {}"),
    ],
)
def test_a_factor_may_follow_from_a_percentage(grown: float, language: str, times: str) -> None:
    def unproved(factor: str, column: str = "growth_pct") -> bool:
        text = times.format(factor.replace(".", "," if language == "de" else "."))
        return bool(unproved_numbers(text, [result(("North", grown), columns=("a", column))], (), language))

    assert [factor for factor in ("3.5", "2.5", "3.50", "2.495") if unproved(factor)] == []
    assert [factor for factor in ("3.4", "3.6", "2.4", "2.6", "3.51", "35") if not unproved(factor)] == []
    assert unproved("3.5", column="total")


def test_a_factor_below_one_follows_from_a_fall() -> None:
    fallen = result(("North", -40.0), columns=("region", "growth_pct"))
    assert unproved_numbers("It fell to 0.6 times, not to 0.4 times.", [fallen], (), "en") == ["0.4"]


def test_only_a_number_that_is_called_a_factor_is_one() -> None:
    grown = result(("North", 249.5), columns=("region", "growth_pct"))
    assert unproved_numbers("It is 3.5, which is 3.5 more, or 3.5 %.", [grown], (), "en") == [
        "3.5",
        "3.5",
        "3.5 %",
    ]


@pytest.mark.parametrize("limit", ["0.05", "1.05", "0.95"])
def test_a_fraction_of_the_sql_is_a_percentage(limit: str) -> None:
    limited = SALES.model_copy(update={"constants": (limit, "7")})
    assert unproved_numbers("Exceeded by more than 5 %, by 6 % and by 7 %.", [limited], (), "en") == [
        "6 %",
        "7 %",
    ]


def test_a_place_in_a_list_is_no_number() -> None:
    assert without_rank("| 1 | North | 120 |", 3) == "| North | 120 |"
    assert without_rank("2. South: 80", 3) == " South: 80"
    assert without_rank("3. West: 8", 3) == " West: 8"
    assert [one.text for one in numbers_of(without_rank("**9.** North | 3", 3), "en")] == ["9", "3"]


@pytest.mark.parametrize(
    "date_text",
    [
        "4 May 2026",
        "May 4, 2026",
        "the 4th of May, 2026",
        "am 4. Mai 2026",
        "4 mai 2026",
        "04.05.2026",
        "2026-05-04",
    ],
)
def test_today_is_no_number(date_text: str) -> None:
    rest = without_date(f"As of {date_text}, 12 are late.", date(2026, 5, 4))
    assert [number.text for number in numbers_of(rest, "en")] == ["12"]


@pytest.mark.parametrize("text", ["14 May 2026", "4 May 2025", "4 orders", "05.05.2026", "2026"])
def test_another_date_than_today_is_left(text: str) -> None:
    assert without_date(text, date(2026, 5, 4)) == text


def test_text_without_end_is_read_quickly() -> None:
    assert unproved_numbers("1" + ",111" * 20_000, [SALES], (), "en")
    assert not unproved_numbers("." * 100_000 + " -" * 50_000, [SALES], (), "en")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("It runs at 15 bar.", True), ("Two pumps run.", True), ("See A200b.", True), ("It runs.", False)],
)
def test_digits_and_number_words_are_numbers(text: str, expected: bool) -> None:
    assert has_number(text) is expected
