"""Token counting: with the embedding model's tokenizer if configured, otherwise 3.6 characters per token."""

from collections.abc import Callable, Sequence
from functools import cache
from math import ceil

from shared.platform.loading import load

CHARS_PER_TOKEN = 3.6
_FRAME_TOKENS = 20  # of the element around a block or a finding


def tokens_of(text: str) -> int:
    """Estimate the tokens of a text in a prompt."""
    return round(len(text) / CHARS_PER_TOKEN) + _FRAME_TOKENS


TokenCounter = Callable[[Sequence[str]], list[int]]
"""Tokens of each text, without the model's begin and end marks. Additive over words, or an upper bound."""

# A word-piece tokenizer counts over 100 letters without a blank (base64, minified code) as one
# unknown token, while other models count all of them. Prose never comes near this.
_MAX_CHARS_PER_TOKEN = 20
_BATCH = 512


@cache
def token_counter(tokenizer_path: str | None) -> TokenCounter:
    """Return the counter for a tokenizer.json, or the estimate without a path. Cached per process."""
    if tokenizer_path is None:
        return estimate_tokens
    tokenizer = load("tokenizers", "Tokenizer").from_file(tokenizer_path)
    # MiniLM's file truncates and pads to 128 tokens, which would falsify the count.
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
    """Estimate each text's tokens, rounding up for short ones."""
    return [ceil(len(text) / CHARS_PER_TOKEN) for text in texts]
