"""Finds the questions inside a question. Pure."""

import re

_PART = re.compile(
    r"(?:\?\s+|;\s+|,?\s+(?:and|und)\s+(?=(?:what|how|when|who|which|why|was|wie|wann|wer|welche)\b))",
    re.IGNORECASE,
)


def question_parts(question: str) -> list[str]:
    """Split at question marks and before "and what", "und wie"; a plain question is its own only part."""
    pieces = (part.strip(" ,.?") for part in _PART.split(question))
    parts = [piece for piece in pieces if len(piece.split()) > 1]
    return parts if len(parts) > 1 else [question]
