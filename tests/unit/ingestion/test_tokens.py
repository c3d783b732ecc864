"""Counting tokens, with a tokenizer and without."""

from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from shared.ingestion.tokens import token_counter


def test_without_a_tokenizer_letters_are_counted() -> None:
    assert token_counter(None)(["", "a", "twelve chars"]) == [0, 1, 4]


def test_the_tokenizers_own_truncation_is_switched_off(tmp_path: Path) -> None:
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "word": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=4)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    count = token_counter(str(tmp_path / "tokenizer.json"))
    assert count(["word " * 10, "word"]) == [10, 1]
