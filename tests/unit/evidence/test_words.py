"""Tests of the splitting of texts into words that no document may break."""

import random

from shared.evidence.words import block_words, quoted_words, shown_form

_PIECES = (
    "- ", "-\n", "-|-", "\n\t", "  ", ".", "|", "(", ")", "%", "++", "#", "°C", "\x02", "\ufffe", "1", "1,5",
    "3 000", "a", "end", "www.", "Next", "é", "़", "語", "10²", "½",
)  # fmt: skip


def test_a_broken_word_after_a_connected_one() -> None:
    """Python 3.11's `re` raises SystemError if a possessive repetition contains a capturing group."""
    text = "a | b |<?http://evil.example- \n\twww.evil.example\n-|-\n"
    assert quoted_words(text)[-1].keys == ("evil.examplewww.evil.example", "evil.example-www.evil.example")


def test_any_text_is_split_in_order() -> None:
    pieces = random.Random(1)
    for _ in range(3_000):
        text = shown_form("".join(pieces.choice(_PIECES) for _ in range(pieces.randint(1, 25))))
        for words in (block_words(text), quoted_words(text), quoted_words(text, groups_digits=False)):
            spans = [span for word in words for span in (word.start, word.end)]
            assert spans == sorted(spans)
            assert all(word.keys and text[word.start : word.end] for word in words)
