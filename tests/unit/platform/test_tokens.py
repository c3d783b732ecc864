"""Tests for counting tokens with and without a tokenizer."""

from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from shared.documents.models import Element
from shared.ingestion.chunking import chunk_elements
from shared.platform.tokens import _parts, token_counter


def test_without_a_tokenizer_letters_are_counted() -> None:
    assert token_counter(None)(["", "a", "twelve chars"]) == [0, 1, 4]


def unknowing_tokenizer(folder: Path) -> str:
    """Write a tokenizer that knows a single word and maps any other text to one unknown token; return its
    path.
    """
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "word": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=4)
    tokenizer.save(str(folder / "tokenizer.json"))
    return str(folder / "tokenizer.json")


def test_the_tokenizers_own_truncation_is_switched_off(tmp_path: Path) -> None:
    count = token_counter(unknowing_tokenizer(tmp_path))
    assert count(["word " * 10, "word"]) == [10, 1]


def test_a_text_without_blanks_is_cut_although_a_tokenizer_takes_it_for_one_word(tmp_path: Path) -> None:
    lump = Element(kind="paragraph", text="x" * 100_000)
    chunks = chunk_elements([lump], 200, token_counter(unknowing_tokenizer(tmp_path)))
    assert max(len(chunk.text) for chunk in chunks) < 10_000
    assert "".join(chunk.text for chunk in chunks).replace(" ", "") == lump.text


def test_a_long_text_is_counted_in_parts(tmp_path: Path) -> None:
    count = token_counter(unknowing_tokenizer(tmp_path))
    assert count(["word " * 10_000, "", "word"]) == [10_000, 0, 1]


def test_no_text_reaches_the_tokenizer_as_a_whole_if_it_is_long() -> None:
    for text in ("x" * 10_000, "word " * 5_000, " " * 9_000, f"{'x' * 3_999} {'y' * 5_000}"):
        parts = list(_parts(text))
        assert "".join(parts) == text
        assert max(map(len, parts)) <= 4_000
