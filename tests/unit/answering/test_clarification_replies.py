"""Tests for replies to a clarification: a number, a position, a name or other text."""

from contextlib import suppress

import pytest

from shared.answering.clarification import chosen_doc_ids, read_reply
from shared.platform.errors import CallerError
from shared.runs.models import Choice, ClarificationAnswer, ClarificationOption

OPTIONS = tuple(
    ClarificationOption(number=number, doc_id=f"d{number}", filename=filename, title=title, date=date)
    for number, (filename, title, date) in enumerate(
        [
            ("annual-report-2022.pdf", "Annual report 2022", "2026-03-01"),
            ("annual-report-2023.pdf", "Annual report 2023", "2026-02-01"),
            ("annual-report-2024-north.pdf", "Annual report 2024, region North", "2026-01-01"),
        ],
        start=1,
    )
)


def numbers(text: str) -> tuple[int, ...]:
    choice = read_reply(ClarificationAnswer(text=text), OPTIONS)
    assert not choice.extra_words
    return choice.numbers


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("2", (2,)),
        ("No. 2, please", (2,)),
        ("option 3", (3,)),
        ("the second", (2,)),
        ("the second one", (2,)),
        ("number one", (1,)),
        ("the last one", (3,)),
        ("1 and 3", (1, 3)),
        ("both", (1, 2, 3)),
        ("all of them", (1, 2, 3)),
        ("the 2024 one", (3,)),
        ("the latest", (3,)),
        ("the oldest one", (1,)),
        ("I mean the annual report 2023", (2,)),
        ("annual-report-2022.pdf", (1,)),
        ("the one for the north", (3,)),
        ("2023 and 2024", (2, 3)),
        ("Nummer 2 bitte", (2,)),
        ("den zweiten", (2,)),
        ("die aus 2023", (2,)),
        ("der neueste", (3,)),
        ("alle", (1, 2, 3)),
    ],
)
def test_words_and_numbers_choose_options(text: str, chosen: tuple[int, ...]) -> None:
    assert numbers(text) == chosen


def test_names_count_before_dates() -> None:
    options = (
        ClarificationOption(
            number=1, filename="annual-report-2023.pdf", title="Annual report", date="2024-02-01"
        ),
        ClarificationOption(
            number=2, filename="annual-report-2024.pdf", title="Annual report", date="2025-02-01"
        ),
    )
    for text in ("annual-report-2024.pdf", "the one from 2024", "the newer one, 2024"):
        assert read_reply(ClarificationAnswer(text=text), options).numbers == (2,)
    assert read_reply(ClarificationAnswer(text="the one of February 2025"), options).numbers == (2,)


@pytest.mark.parametrize("text", ["②", "²", "２", "the ② one", "No. ２"])
def test_a_number_may_be_written_as_clients_of_chats_write_it(text: str) -> None:
    assert numbers(text) == (2,)


@pytest.mark.parametrize("text", ["₉", "೨²x", "①②③"])
def test_no_sign_that_looks_like_a_number_is_more_than_a_wrong_answer(text: str) -> None:
    with suppress(CallerError):
        read_reply(ClarificationAnswer(text=text), OPTIONS)


def test_a_number_is_a_number() -> None:
    assert read_reply(ClarificationAnswer(choice=2), OPTIONS) == Choice(said="2", numbers=(2,))


@pytest.mark.parametrize(
    "answer", [{"choice": 4}, {"choice": 0}, {"choice": -1}, {"text": "7"}, {"text": "the fifth"}]
)
def test_an_option_that_is_not_there_is_refused_with_those_that_are(answer: dict[str, object]) -> None:
    with pytest.raises(CallerError) as refused:
        read_reply(ClarificationAnswer.model_validate(answer), OPTIONS)
    assert refused.value.hints[1] == "2: Annual report 2023 (annual-report-2023.pdf, 2026-02-01)"


@pytest.mark.parametrize(
    "text", ["what was the profit", "the one of the works council", "?", "annual report"]
)
def test_words_that_choose_nothing_are_added_to_the_question(text: str) -> None:
    assert read_reply(ClarificationAnswer(text=text), OPTIONS) == Choice(said=text, extra_words=text)


def test_what_is_not_chosen_among_means_all() -> None:
    assert chosen_doc_ids(Choice(numbers=(2,)), OPTIONS) == ("d2",)
    assert chosen_doc_ids(Choice(), OPTIONS) == ("d1", "d2", "d3")


@pytest.mark.parametrize("body", [{}, {"choice": 1, "text": "one"}, {"text": "  "}, {"text": "x" * 501}])
def test_an_answer_is_either_a_number_or_words(body: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        ClarificationAnswer.model_validate(body)
