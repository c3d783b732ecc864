"""Tests for sentence boundaries, truncation of answers, and the statement that a citation belongs to."""

import pytest

from shared.evidence.text import (
    cited_statements,
    cut_at_word,
    last_claim,
    split_sentences,
    split_words,
    whole_sentences,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("See Fig. 3 and Dr. Smith. Then go.", ["See Fig. 3 and Dr. Smith.", "Then go."]),
        ("It costs 3.5 bar. ok", ["It costs 3.5 bar. ok"]),
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        ("J. Doe wrote it. He knew.", ["J. Doe wrote it.", "He knew."]),
        ("row one\nrow two", ["row one", "row two"]),
        ("Es sind 12 Mio. EUR. Gut.", ["Es sind 12 Mio. EUR.", "Gut."]),
        ("12 Tsd. Euro, 3 Mrd. EUR, 4 Mill. EUR, zehn Mio. Stück", None),
        ("5 thsd. EUR, 5 bn. EUR, 5mn. EUR, 5Mio. EUR, 5 mln. EUR, 5 tys. EUR, 5 mld. EUR", None),
        ("It was in the bn. The end.", ["It was in the bn.", "The end."]),
        ("", []),
    ],
)
def test_sentences(text: str, expected: list[str] | None) -> None:
    assert split_sentences(text) == ([text] if expected is None else expected)


def test_scripts_without_blanks_are_cut_into_bounded_runs() -> None:
    assert [len(word) for word in split_words("語" * 90)] == [40, 40, 10]


MARK = "(Source: manual.pdf, S. 1)[1]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It runs at 15 bar. The tempera", "It runs at 15 bar."),
        ("It runs at 15 bar. It is 80 degrees warm.", "It runs at 15 bar. It is 80 degrees warm."),
        ("It runs at 15 bar.  ", "It runs at 15 bar."),
        ('He said: "Stop."', 'He said: "Stop."'),
        ("It runs at", ""),
        ("", ""),
        (f"It runs at 15 bar. {MARK} The tem", f"It runs at 15 bar. {MARK}"),
        (f"It runs at 15 bar {MARK}. The tem", f"It runs at 15 bar {MARK}."),
        (f"It runs at 15 bar {MARK} The tem", f"It runs at 15 bar {MARK}"),
        (f"It runs. {MARK} (Source: b.pdf, S. 2)[2] Then", f"It runs. {MARK} (Source: b.pdf, S. 2)[2]"),
        (f"It runs. {MARK} and", f"It runs. {MARK}"),
        (f"動く。止まる。{MARK}次", f"動く。止まる。{MARK}"),
        (f"It runs. The pump {MARK} and the valve", "It runs."),
        (f"The pump {MARK} and the valve", f"The pump {MARK}"),
        ("It runs. See (Source: Report. Final.pdf, S. 3)[1] and", "It runs."),
        ("It runs at approx. 15 bar, as Dr. M", ""),
        ("- 15 bar\n- 80 °C \n- 3 l", "- 15 bar\n- 80 °C"),
        ("It runs.\n\n## Temperature\n\nThe pump", "It runs."),
        ("It runs.\n\n```\nx = 1\ny", "It runs."),
        ("It runs.\n\n```\nx = 1\n```\n\nAnd", "It runs.\n\n```\nx = 1\n```"),
        ("Sie läuft mit 15 bar. Die", "Sie läuft mit 15 bar."),
    ],
)
def test_a_text_is_cut_behind_its_last_whole_sentence(text: str, expected: str) -> None:
    assert whole_sentences(text) == expected


@pytest.mark.parametrize("end", range(1, 80))
def test_what_is_kept_begins_the_text_and_holds_no_half_mark(end: int) -> None:
    text = f"It runs at 15 bar. {MARK} The temperature is 80 °C. {MARK} Done."[:end]
    sentences = whole_sentences(text)
    assert text.startswith(sentences)
    assert not sentences or sentences.endswith((".", "]"))


TABLE = "Intro.\n\n| a | b |\n|---|---|\n| x | 9 bar"


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("", ""),
        ("One. Two\n\nThree. Four. \n", "Three. Four."),
        (TABLE, "| a | b |\n| x | 9 bar"),
        (TABLE.replace("\n|", "\n  |"), "| a | b |\n| x | 9 bar"),
        ("| a | b |\n| x | 9 bar", "| a | b |\n| x | 9 bar"),
        ("| a", "| a"),
        ("x" * 20_000, "x" * 500),
    ],
)
def test_the_claim_is_the_whole_line_or_the_row_with_its_header(text: str, claim: str) -> None:
    assert last_claim(text) == claim


def test_statements_are_read_with_the_numbers_of_their_citations() -> None:
    text = (
        "Nothing cites this.\nIt weighs 312 kg. (Source: a (b).pdf, S. 3)[1] (Source: c.md)[12], and 5 m "
        "(Source: d.vtt, [01:23](/x#t=83))[2].\n\n| 9 (Source: a.pdf)[1] | 8 |\n"
    )
    assert list(cited_statements(text)) == [
        ("It weighs 312 kg.", (1, 12)),
        (", and 5 m", (2,)),
        ("| 9", (1,)),
    ]


@pytest.mark.parametrize(
    ("line", "statements"),
    [
        ("It weighs 5 kg \t (Source: a.pdf)[1] \t (Source: b.pdf)[2]", [("It weighs 5 kg", (1, 2))]),
        (" (Source: a.pdf)[1]\t", [("", (1,))]),
        ("See (Source: a.pdf, but (Source: b.pdf)[2]", [("See (Source: a.pdf, but", (2,))]),
    ],
)
def test_a_mark_begins_at_the_first_space_before_it_and_contains_no_other(
    line: str, statements: list[tuple[str, tuple[int, ...]]]
) -> None:
    assert list(cited_statements(line)) == statements


@pytest.mark.parametrize(
    ("max_chars", "shortened"),
    [
        (16, "It weighs 312 kg"),
        (15, "It weighs 312 …"),
        (14, "It weighs 312 …"),
        (13, "It weighs …"),
        (1, " …"),
    ],
)
def test_a_long_line_is_cut_between_words(max_chars: int, shortened: str) -> None:
    assert cut_at_word("It weighs 312 kg", max_chars) == shortened
