"""Tests for checking the numbers of a statement against the cited result."""

from datetime import date

import pytest

from shared.evidence.models import Cell, QueriedTable, TableResult
from shared.evidence.number_proof import has_number, numbers_of, unproved_numbers, without_date, without_rank
from shared.evidence.number_words import words_of

TABLE = QueriedTable(table_id="d.1", doc_id="d", filename="sales-2024.csv", content_hash="h")


@pytest.fixture(autouse=True)
def _without_cached_words() -> None:
    # A mutant runs in a forked process, which would otherwise use the words of the unchanged code.
    words_of.cache_clear()


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


@pytest.mark.parametrize(
    ("language", "column"),
    [
        ("en", "growth_rate"),
        ("de", "Inflationsrate"),
        ("de", "Marktanteil"),
        ("fr", "taux_de_marge"),
        ("fr", "part_de_marché"),
        ("fr", "Croissance"),
        ("es", "tasa de paro"),
        ("es", "cuota_de_mercado"),
        ("it", "tasso_di_crescita"),
        ("it", "quota di mercato"),
        ("pt", "taxa de juro"),
        ("pt", "participação"),
        ("nl", "marktaandeel"),
        ("nl", "bezettingsgraad"),
        ("sv", "marknadsandel"),
        ("da", "vækst"),
        ("nb", "kvinneandel"),
        ("pl", "udział w rynku"),
        ("en", "taux"),
    ],
)
def test_a_column_may_contain_percentages_in_any_language(language: str, column: str) -> None:
    shares = result(("West", 12.5), columns=("a", column))
    assert unproved_numbers("12.5 %", [shares], (), language) == []


@pytest.mark.parametrize(
    ("language", "column"),
    [
        ("en", "corporate_sales"),
        ("en", "strategy"),
        ("en", "shareholders"),
        ("de", "Einzelhandel"),
        ("en", "part_number"),
        ("sv", "handel"),
        ("de", "Konzentrate"),
    ],
)
def test_other_columns_do_not_contain_percentages(language: str, column: str) -> None:
    sales = result(("West", 12.5), columns=("a", column))
    assert unproved_numbers("12.5 %", [sales], (), language) == ["12.5 %"]


@pytest.mark.parametrize(
    ("language", "statement"),
    [
        ("es", "Es el 12,5 por ciento."),
        ("fr", "C'est 12,5 pour cent."),
        ("it", "È il 12,5 per cento."),
        ("pt", "São 12,5 por cento."),
        ("sv", "Det är 12,5 procent."),
        ("nb", "Det er 12,5 prosent."),
        ("de", "Eine 12,5%ige Quote."),
    ],
)
def test_a_percentage_may_be_written_as_a_word(language: str, statement: str) -> None:
    assert unproved_numbers(statement, [result(("West", 0.125))], (), language) == []


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


FALLEN = result(("North", -45), ("South", 1_500_000), columns=("region", "change"))
_MILLIONS = result(("North", 5_200_000_000.0), ("South", 12_000_000.0), ("West", 3_000))


@pytest.mark.parametrize(
    ("language", "statement"),
    [
        ("en", "It missed the target by 45."),
        ("en", "There is a gap of 45."),
        ("en", "The North trails by 45."),
        ("de", "Das Ziel wurde um 45 verfehlt."),
        ("de", "Es klafft eine Lücke von 45."),
        ("de", "Der Norden liegt 45 hinter dem Plan."),
        ("de", "Das ist um 45 schlechter."),
        ("de", "Eine Minderung um 45."),
        ("de", "Der Jahresfehlbetrag ist 45."),
        ("de", "Der Umsatzrückgang war 45."),
        ("de", "Er ging um 45 zurück."),
        ("de", "Der Bestand nahm um 45 ab."),
        ("de", "Er liegt 45 unter Plan."),
        ("de", "Es sind 45 € unter dem Vorjahreswert."),
        ("de", "Nord hat 45 Euro unter Süd."),
        ("de", "Das Ergebnis blieb mit 45 unter dem von Süd."),
        ("de", "Unter den Erwartungen: 45."),
        ("en", "It is 45 under budget."),
        ("en", "At 45, it is under the target."),
        ("en", "The North is 45 under last year."),
        ("en", "The North underperformed by 45."),
        ("sv", "Det är 45 under budget."),
        ("sv", "Nord ligger 45 under Syd."),
        ("nb", "Nord er 45 kr. under Sør."),
        ("da", "Det er 45 under målet."),
        ("de", "Das Ziel wurde um 45 unterschritten."),
        ("de", "Der Norden büßte 45 ein, eine Einbuße."),
        ("fr", "Le Nord en a 45 de moins."),
        ("fr", "Une baisse de 45."),
        ("fr", "Il est en dessous de 45."),
        ("fr", "Le résultat est inférieur de 45."),
        ("fr", "Eine Lücke von 45, a loss."),
        ("it", "Un calo di 45."),
        ("it", "45 in meno."),
        ("it", "Sono mancati 45."),
        ("es", "Cayó 45 por debajo del plan."),
        ("es", "Bajó 45."),
        ("es", "Una caída de 45."),
        ("pt", "Uma queda de 45."),
        ("pt", "Ficou 45 abaixo do plano."),
        ("nl", "45 minder dan gepland."),
        ("nl", "Een daling van 45."),
        ("pl", "Spadek o 45."),
        ("pl", "Sprzedaż była niższa o 45."),
        ("sv", "Det är 45 mindre."),
        ("sv-SE", "Försäljningen sjönk med 45."),
        ("da", "Et fald på 45."),
        ("nb", "Et underskudd på 45."),
        ("ja", "45です。"),
        ("cs", "Je to 45."),
    ],
)
def test_a_decrease_is_stated_by_its_magnitude_in_the_words_of_the_language(
    language: str, statement: str
) -> None:
    assert unproved_numbers(statement, [FALLEN], (), language) == []


@pytest.mark.parametrize(
    ("language", "statement"),
    [
        ("en", "The balance is 45."),
        ("en", "The mission cost 45."),
        ("en", "The trailer cost 45."),
        ("en", "We understand that it is 45."),
        ("en", "La baisse est 45."),
        ("de", "Das Unternehmen erzielte 45."),
        ("de", "Unter anderem sind es 45."),
        ("de", "Unter den Filialen hat Nord 45."),
        ("de", "Nord liegt mit 45 unter den Besten."),
        ("de", "Es waren 45 unter der neuen Leitung."),
        ("de", "Der Unterhalt kostet 45."),
        ("en", "Under the contract it earned 45."),
        ("en", "Under IFRS it is 45."),
        ("sv", "Under 2024 var det 45."),
        ("sv", "Det var 45 under 2024."),
        ("sv", "Resultatet låg på 45 under året."),
        ("da", "Det var 45 under perioden."),
        ("de", "Die Minderheit hat 45."),
        ("de", "Es waren 45 Fehler."),
        ("de", "Hinterlegt sind 45."),
        ("de", "Zurückgezahlt wurden 45."),
        ("de", "Zurückgegeben wurden 45; das ist zu unterschreiben."),
        ("fr", "Le solde est de 45."),
        ("fr", "Il y en a au moins 45."),
        ("fr", "La sous-traitance coûte 45."),
        ("it", "Sono almeno 45."),
        ("it", "Il calcolo dà 45."),
        ("it", "Ci sono 45 persone."),
        ("es", "Son al menos 45."),
        ("es", "Por lo menos 45."),
        ("pt", "São pelo menos 45."),
        ("nl", "De onderneming heeft 45."),
        ("nl", "De adaptatie kost 45."),
        ("pl", "Strategia kosztuje 45."),
        ("sv", "Det är minst 45."),
        ("sv-SE", "Det är minst 45."),
        ("da", "Det er mindst 45."),
    ],
)
def test_other_words_do_not_make_a_number_negative(language: str, statement: str) -> None:
    assert unproved_numbers(statement, [FALLEN], (), language) == ["45"]


@pytest.mark.parametrize(
    ("language", "statement"),
    [
        ("en", "5.2 billion, 12 million, 3 thousands"),
        ("de", "5,2 Milliarden, 12 Mio., 3 Tsd."),
        ("fr", "5,2 milliards, 5,2 Mds d'euros, 5,2 Md€, 12 millions, 3 milliers"),
        ("it", "5,2 miliardi, 5,2 mld, 12 milioni, 12 mln, 3 mila, 3mila"),
        ("es-MX", "12 millones"),
        ("es", "5,2 mil millones, 5,2 miles de millones, 12 millones, 3 mil, 3 miles"),
        ("pt", "5,2 bilhões, 5,2 mil milhões, 12 milhões, 3 mil"),
        ("nl", "5,2 miljard, 12 miljoen, 3 duizend"),
        ("pl", "5,2 mld, 12 milionów, 12 mln, 3 tys., 3 tysiące"),
        ("sv", "5,2 miljarder, 12 miljoner, 3 tusen"),
        ("da", "5,2 milliarder, 12 millioner, 3 tusind"),
        ("no", "5,2 milliarder, 12 millioner, 3 tusen"),
    ],
)
def test_scales_are_read_in_the_words_of_the_language(language: str, statement: str) -> None:
    assert unproved_numbers(statement, [_MILLIONS], (), language) == []


@pytest.mark.parametrize(
    ("language", "statement", "wrong"),
    [
        ("es", "5,2 mil", ["5,2 mil"]),
        ("es", "12 mil millones", ["12 mil millones"]),
        ("en", "3 mil", ["3"]),
        ("en", "3 miles", ["3"]),
        ("de", "5,2 Billionen, 5,2 Billion", ["5,2 Billionen", "5,2 Billion"]),
        ("fr", "5,2 billions", ["5,2 billions"]),
        ("xx", "12 milionów", ["12"]),
    ],
)
def test_a_wrong_scale_is_unproved(language: str, statement: str, wrong: list[str]) -> None:
    truncated = _MILLIONS.model_copy(update={"truncated": True})
    assert unproved_numbers(statement, [truncated], (), language) == wrong


@pytest.mark.parametrize(
    ("heading", "language", "statement"),
    [
        ("Angaben in TEUR", "de", "12.012,8 Tsd. EUR"),
        ("in TEUR", "en", "12,012.8 thousand EUR"),
        ("T€", "en", "12,012.8 thousand"),
        ("in T EUR", "en", "12,012.8 thousand"),
        ("in k€", "en", "12,012.8 k€"),
        ("kEUR", "en", "12,012.8 thousand"),
        ("EUR thousands", "en", "12,012.8 thousand"),
        ("in 1.000 EUR", "de", "12.012,8 Tausend Euro"),
        ("$'000", "en", "12,012.8 thousand"),
        ("en milliers d'euros", "en", "12,012.8 thousand"),
        ("in migliaia di euro", "it", "12.012,8 mila euro"),
        ("en miles de euros", "es", "12.012,8 mil"),
        ("w tys. zł", "en", "12,012.8 thousand"),
        ("Tkr", "sv", "12 012,8 tusen"),
        ("in Mio. €", "en", "12,012.8 million"),
        ("EURm", "en", "12,012.8 million"),
        ("en millones", "en", "12,012.8 million"),
        ("in mld EUR", "de", "12.012,8 Mrd. EUR"),
        ("in thousand EUR", "en", "12.01 million EUR"),
        ("in Mio. EUR", "de", "12,01 Mrd. EUR"),
        ("in thousand EUR", "en", "12,012.8 EUR"),
    ],
)
def test_the_lines_above_a_table_give_its_numbers_their_scale(
    heading: str, language: str, statement: str
) -> None:
    table = result(("North", 12012.8)).model_copy(update={"headings": ("Sales", heading)})
    assert unproved_numbers(statement, [table], (), language) == []


@pytest.mark.parametrize(
    ("heading", "language", "statement"),
    [
        ("in EUR", "en", "12,012.8 thousand"),
        ("in miles", "en", "12,012.8 thousand"),
        ("Text", "en", "12,012.8 thousand"),
        ("in thousand EUR", "en", "12,012.8 million"),
        ("in thousand EUR", "en", "12.01 billion"),
        ("in Mio. EUR", "en", "12,012.8 thousand"),
        ("10.000 EUR", "en", "12,012.8 thousand"),
        ("in TEUR", "en", "12,012.8 million"),
        ("in TEUR", "en", "12,012.8 billion"),
        ("in Mio. EUR", "en", "12,012.8 billion"),
    ],
)
def test_another_scale_than_that_of_the_table_is_wrong(heading: str, language: str, statement: str) -> None:
    table = result(("North", 12012.8)).model_copy(update={"headings": (heading,)})
    assert unproved_numbers(statement, [table], (), language) == [statement]


@pytest.mark.parametrize(
    ("language", "statement"),
    [
        ("en", "In the first three quarters."),
        ("en", "Over the last two years, and all twelve months."),
        ("en", "The next five fiscal years."),
        ("en", "Over twelve months, or four quarters."),
        ("en", "A twelve-month period."),
        ("de", "Die ersten drei Quartale."),
        (
            "de",
            "In den letzten zwei Geschäftsjahren, den vergangenen fünf Monaten und allen vier Quartalen.",
        ),
        ("de", "Über zwölf Monate; nächste drei Wochen."),
        ("nl", "Ten opzichte van het plan."),
        ("pl", "Ten produkt."),
    ],
)
def test_periods_are_named_with_number_words(language: str, statement: str) -> None:
    assert unproved_numbers(statement, [result(("North", 1))], (), language) == []


@pytest.mark.parametrize(
    ("language", "statement", "wrong"),
    [
        ("en", "The delay was five months.", ["five"]),
        ("en", "The first five orders.", ["five"]),
        ("en", "The last five yearly reports.", ["five"]),
        ("en", "It took three quarters.", ["three"]),
        ("en", "Ten of twelve.", ["Ten", "twelve"]),
        ("de", "Der Verzug war fünf Monate.", ["fünf"]),
        ("de", "Die ersten fünf Aufträge in drei Quartalen.", ["fünf", "drei"]),
        ("en", "In the last two years 500.", ["500"]),
    ],
)
def test_other_number_words_are_values(language: str, statement: str, wrong: list[str]) -> None:
    assert unproved_numbers(statement, [result(("North", 1))], (), language) == wrong


def test_a_question_in_english_supports_an_answer_in_another_language() -> None:
    assert unproved_numbers("Les 12 mois.", [SALES], ["What about twelve months?"], "fr") == []


@pytest.mark.parametrize(
    ("language", "text", "numbers"),
    [
        ("de", "2025 747.590 kWh", ["2025", "747.590"]),
        ("de", "2025 120 Stück", ["2025", "120"]),
        ("sv", "2024 790 757", ["2024", "790 757"]),
        ("sv", "2024 790\u202f757", ["2024", "790\u202f757"]),
        ("en", "In 2025 747,590 kWh", ["2025", "747,590"]),
        ("fr", "12 345 678,9", ["12 345 678,9"]),
        ("en", "1 234 5678", ["1 234", "5678"]),
        ("en", "1 234,567.8", ["1 234,567.8"]),
    ],
)
def test_digits_are_grouped_by_spaces_only_after_one_to_three(
    language: str, text: str, numbers: list[str]
) -> None:
    assert [number.text for number in numbers_of(text, language)] == numbers


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("28.2.26", [28, 2, 2026]),
        ("1/3/69", [1, 3, 2069]),
        ("01. 03. 70", [1, 3, 1970]),
        ("1.3.2070", [1, 3, 2070]),
    ],
)
def test_a_year_of_two_digits_has_a_century(text: str, values: list[int]) -> None:
    assert [number.value for number in numbers_of(text, "de")] == values


def test_a_date_with_a_short_year_is_proved_by_the_whole_date() -> None:
    ends = result(("C-1", "2026-02-28"))
    assert unproved_numbers("Er endet am 28.2.26.", [ends], (), "de") == []
    assert unproved_numbers("Er endet am 28.2.27.", [ends], (), "de") == ["2027"]
    assert unproved_numbers("Er endet am 28.2.2026.", [ends], (), "de") == []
    assert [number.text for number in numbers_of("Kapitel 1.2.3.4", "de")] == ["1.2.3.4"]


@pytest.mark.parametrize(
    ("unit", "cells", "statement", "wrong"),
    [
        ("in thousand EUR", (95, 5), "EUR 95,000, EUR 5,000 too much", []),
        ("in thousand EUR", (95.4,), "EUR 95,400, not EUR 95,000 or 954,000", ["95,000", "954,000"]),
        ("in Mio. EUR", (1.5,), "EUR 1,500,000, not EUR 1,500", ["1,500"]),
        ("in thousand EUR", (-5,), "EUR -5,000, not EUR 5,000", ["5,000"]),
        ("in thousand EUR", (-5,), "It fell by EUR 5,000", []),
        ("in thousand EUR", (95,), "95,000 thousand", ["95,000 thousand"]),
        ("in thousand EUR", (95,), "9,500,000 %, 95,000 %", ["9,500,000 %", "95,000 %"]),
        ("in thousand EUR", (95,), "95,000 times", ["95,000"]),
        ("in thousand EUR", (95,), "95,000 employees, 95,000 eurocrats", ["95,000", "95,000"]),
        ("in thousand EUR", (95,), "95,000 euros, €95,000, € 95,000, US$ 95,000, 95,000€", []),
        ("in thousand EUR", (-95,), "-€95,000, EUR -95,000, €\u00a0-95,000", []),
        ("in thousand EUR", (95,), "the euro: 95,000, EUR (gross) 95,000", ["95,000", "95,000"]),
        ("in EUR", (95,), "EUR 95,000", ["95,000"]),
    ],
)
def test_the_scale_of_a_table_may_be_written_out(
    unit: str, cells: tuple[Cell, ...], statement: str, wrong: list[str]
) -> None:
    table = result(*(("North", cell) for cell in cells)).model_copy(update={"headings": (unit,)})
    assert unproved_numbers(statement, [table.model_copy(update={"truncated": True})], (), "en") == wrong


def test_only_the_lines_above_a_table_give_a_number_without_a_scale_one() -> None:
    assert unproved_numbers("95,000", [result(("North", 95), columns=("a", "length_m"))], (), "en")
    assert unproved_numbers("95,000", [result(("North", 95), columns=("a", "thousand"))], (), "en")


def test_a_number_word_may_count_listed_items() -> None:
    unproved = unproved_numbers("Two of the seven, not 7, seven million or eight.", [SALES], (), "en", {7})
    assert unproved == ["7", "seven million", "eight"]
