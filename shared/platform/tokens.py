"""Token counting with the embedding model's tokenizer or, without one, at 3.6 characters per token."""

from collections.abc import Callable, Sequence
from functools import cache
from math import ceil

from shared.platform.loading import load

CHARS_PER_TOKEN = 3.6
_FRAME_TOKENS = 20  # tokens of the XML element that surrounds a block or finding


def tokens_of(text: str) -> int:
    """Estimate the number of tokens that a text and its surrounding element take in a prompt."""
    return round(len(text) / CHARS_PER_TOKEN) + _FRAME_TOKENS


TokenCounter = Callable[[Sequence[str]], list[int]]
"""Tokens of each text, without the model's begin and end marks. Additive over words, or an upper bound."""

# A text counts as at least one token per this number of characters. A word-piece tokenizer counts over 100
# characters without a space (base64, minified code) as one unknown token, unlike other models. Prose never
# reaches this ratio.
_MAX_CHARS_PER_TOKEN = 20
_BATCH = 512


@cache
def token_counter(tokenizer_path: str | None) -> TokenCounter:
    """Return a token counter for a tokenizer.json. Without a path, tokens are estimated. Cached per
    process.
    """
    if tokenizer_path is None:
        return estimate_tokens
    tokenizer = load("tokenizers", "Tokenizer").from_file(tokenizer_path)
    # The tokenizer file of MiniLM truncates and pads to 128 tokens, which would distort the count.
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
    """Estimate the number of tokens of each text from its length, rounding up."""
    return [ceil(len(text) / CHARS_PER_TOKEN) for text in texts]
