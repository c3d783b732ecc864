"""Counting tokens: by the embedding model's own tokenizer if there is one, else by 3.6 characters a token."""

from collections.abc import Callable, Sequence
from functools import cache
from math import ceil

CHARS_PER_TOKEN = 3.6
_FRAME_TOKENS = 20  # of the element around a block or a finding


def tokens_of(text: str) -> int:
    """How many tokens a text takes in a prompt, about."""
    return round(len(text) / CHARS_PER_TOKEN) + _FRAME_TOKENS


TokenCounter = Callable[[Sequence[str]], list[int]]
"""Tokens of each text, without the model's begin and end marks. Additive over words, or an upper bound."""

# A tokenizer of word pieces takes more than 100 letters without a blank (base64, minified code) for one
# unknown token. Other models count all of them. No prose comes near this.
_MAX_CHARS_PER_TOKEN = 20
_BATCH = 512


@cache
def token_counter(tokenizer_path: str | None) -> TokenCounter:
    """The counter for a tokenizer.json, or the estimate when there is no path. Loaded once per process."""
    if tokenizer_path is None:
        return estimate_tokens
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(tokenizer_path)
    # The file of MiniLM truncates and pads to 128: a counter must do neither.
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def count(texts: Sequence[str]) -> list[int]:
        return [
            max(len(encoding.ids), len(text) // _MAX_CHARS_PER_TOKEN)
            for start in range(0, len(texts), _BATCH)
            for text, encoding in zip(
                texts[start : start + _BATCH],
                tokenizer.encode_batch_fast(texts[start : start + _BATCH], add_special_tokens=False),
                strict=True,
            )
        ]

    return count


def estimate_tokens(texts: Sequence[str]) -> list[int]:
    """An estimate that errs upwards on short texts."""
    return [ceil(len(text) / CHARS_PER_TOKEN) for text in texts]
