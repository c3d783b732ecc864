"""Token counting with the embedding model's tokenizer or, without one, at 3.6 characters per token."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
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
# A tokenizer needs about 100 bytes of memory per character, so it gets at most 64 texts of 4,000 characters.
_BATCH = 64
_PART_CHARS = 4000


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
        counts = [0] * len(texts)
        parts = ((number, part) for number, text in enumerate(texts) for part in _parts(text))
        while batch := list(islice(parts, _BATCH)):
            encodings = tokenizer.encode_batch_fast([part for _, part in batch], add_special_tokens=False)
            for (number, part), encoding in zip(batch, encodings, strict=True):
                counts[number] += max(len(encoding.ids), len(part) // _MAX_CHARS_PER_TOKEN)
        return counts

    return count


def _parts(text: str) -> Iterator[str]:
    """Yield parts of at most `_PART_CHARS` characters. The text is cut at spaces, or within a word that is
    longer than a part.
    """
    start = 0
    while len(text) - start > _PART_CHARS:
        space = text.rfind(" ", start + 1, start + _PART_CHARS)
        end = start + _PART_CHARS if space < 0 else space
        yield text[start:end]
        start = end
    yield text[start:]


def estimate_tokens(texts: Sequence[str]) -> list[int]:
    """Estimate the number of tokens of each text from its length, rounding up."""
    return [ceil(len(text) / CHARS_PER_TOKEN) for text in texts]
