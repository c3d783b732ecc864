"""A text that was broken off ends behind its last whole sentence, with the marks of its citations."""

import pytest

from shared.evidence.text import whole_sentences

MARK = "(Source: manual.pdf, S. 1)[1]"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("It runs at 15 bar. The tempera", "It runs at 15 bar."),
        ("It runs at 15 bar. It is 80 degrees warm.", "It runs at 15 bar. It is 80 degrees warm."),
        ("It runs at", ""),
        ("", ""),
        (f"It runs at 15 bar. {MARK} The tem", f"It runs at 15 bar. {MARK}"),
        (f"It runs at 15 bar {MARK}. The tem", f"It runs at 15 bar {MARK}."),
        (f"It runs at 15 bar {MARK} The tem", f"It runs at 15 bar {MARK}"),
        (f"It runs. {MARK} (Source: b.pdf, S. 2)[2] Then", f"It runs. {MARK} (Source: b.pdf, S. 2)[2]"),
        (f"It runs. The pump {MARK} and the valve", "It runs."),
        (f"The pump {MARK} and the valve", f"The pump {MARK}"),
        ("It runs. See (Source: Report. Final.pdf, S. 3)[1] and", "It runs."),
        ("It runs at approx. 15 bar, as Dr. M", ""),
        ("- 15 bar\n- 80 °C\n- 3 l", "- 15 bar\n- 80 °C"),
        ("It runs.\n\n## Temperature\n\nThe pump", "It runs."),
        ("It runs.\n\n```\nx = 1\ny", "It runs."),
        ("It runs.\n\n```\nx = 1\n```\n\nAnd", "It runs.\n\n```\nx = 1\n```"),
        ("Sie läuft mit 15 bar. Die", "Sie läuft mit 15 bar."),
    ],
)
def test_a_text_is_cut_behind_its_last_whole_sentence(text: str, kept: str) -> None:
    assert whole_sentences(text) == kept


@pytest.mark.parametrize("end", range(1, 80))
def test_what_is_kept_begins_the_text_and_holds_no_half_mark(end: int) -> None:
    text = f"It runs at 15 bar. {MARK} The temperature is 80 °C. {MARK} Done."[:end]
    kept = whole_sentences(text)
    assert text.startswith(kept)
    assert not kept or kept.endswith((".", "]"))
