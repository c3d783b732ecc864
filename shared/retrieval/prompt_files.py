"""Prompts of retrieval are files in `prompts/`, read once; they hold no placeholders."""

from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "prompts"


@cache
def load(name: str) -> str:
    """The text of `prompts/<name>.md`, without the white space at its ends."""
    return (_FOLDER / f"{name}.md").read_text(encoding="utf-8").strip()
