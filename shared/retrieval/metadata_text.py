"""Types for metadata from untrusted files and models. They remove control characters and truncate long
values.

Such values appear in every list, facet and prompt that shows a document, so one file with an author of
460,000 characters would leave no space in a prompt. Rows read from an index pass these types as well.
"""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

MAX_NAME_CHARS = 200  # enough for titles of standards and laws, which have up to 150 characters
MAX_SUMMARY_CHARS = 2000  # enough for two paragraphs, the most that the model is asked for
MAX_TAGS = 30  # maximum number of tags, also for users; the model is asked for three to eight

# Terminals obey control characters, while invisible characters and bidirectional overrides disguise names.
# Callers handle line feeds and tabs.
HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)


def visible_line(text: str) -> str:
    """Return the text as one line, with invisible characters removed and whitespace collapsed."""
    return " ".join(HIDDEN.sub("", " ".join(text.split())).split())


def truncate(text: str, max_chars: int) -> str:
    """Truncate the text to `max_chars` characters, including a final ellipsis."""
    return text if len(text) <= max_chars else text[: max_chars - 1].rstrip() + "…"


def _name(text: str) -> str:
    return truncate(visible_line(text), MAX_NAME_CHARS)


def _summary(text: str) -> str:
    return truncate(HIDDEN.sub("", text.replace("\r\n", "\n")), MAX_SUMMARY_CHARS)


def _first_tags(tags: Any) -> Any:
    return tags[:MAX_TAGS] if isinstance(tags, list | tuple) else tags


MetadataName = Annotated[str, AfterValidator(_name)]
"""A title, an author, a tag: one line of at most 200 characters."""

MetadataSummary = Annotated[str, AfterValidator(_summary)]
"""At most 2,000 characters."""

MetadataTags = Annotated[tuple[MetadataName, ...], BeforeValidator(_first_tags)]
"""The first 30 tags."""
