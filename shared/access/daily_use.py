"""A person's usage per UTC day and the daily limits that apply to it. Pure.

Usage is recorded where it occurs, so a single call may exceed a limit once; the next call that needs the
resource is refused. A model call is recorded at its maximum while it runs, and corrected to its actual use
when it ends.
"""

# Annotations stay text, so that their types need not be imported at start.
from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

from pydantic import Field

from shared.platform.errors import DailyLimitError
from shared.platform.models import Model
from shared.platform.settings import LimitSettings

Resource = Literal[
    "documents", "size_bytes", "parser_seconds", "blocks", "captions", "chat_tokens", "page_images"
]
SENDING: tuple[Resource, ...] = ("documents", "size_bytes", "parser_seconds", "blocks", "captions")
ASKING: tuple[Resource, ...] = ("chat_tokens",)
DRAWING: tuple[Resource, ...] = ("page_images",)
CALCULATING: tuple[Resource, ...] = ("parser_seconds",)
_WORDS: Mapping[Resource, str] = {
    "documents": "documents",
    "size_bytes": "bytes of documents",
    "parser_seconds": "seconds of reading documents and calculating with tables",
    "blocks": "passages of documents",
    "captions": "pictures described",
    "chat_tokens": "tokens of questions and summaries",
    "page_images": "pages drawn",
}


class Usage(Model):
    """Amounts used, by resource.

    Attributes:
        size_bytes, parser_seconds, blocks, captions: of ingested files; `captions` counts pictures described
            by a model. `parser_seconds` includes SQL over tables.
        chat_tokens: read and written by models for questions and summaries.
        page_images: rendered pages.
    """

    documents: int = 0
    size_bytes: int = 0
    parser_seconds: float = 0.0
    blocks: int = 0
    captions: int = 0
    chat_tokens: int = 0
    page_images: int = 0

    def plus(self, other: Usage) -> Usage:
        """Return the sum of both amounts for each resource. `other` may be negative (a refund); results below
        0 become 0.
        """
        return Usage.model_validate({name: max(0, value + getattr(other, name)) for name, value in self})


class UsageView(Model):
    """The amount of one resource used today, and its limit; 0 = no limit."""

    resource: Resource = Field(description="The limited resource.")
    used: float = Field(description="Amount used today (UTC).")
    limit: float = Field(description="Daily limit; 0 means that there is no limit.")


def limit_of(resource: Resource, rules: LimitSettings) -> float:
    """Return the configured daily limit of a resource; 0 means no limit."""
    return float(getattr(rules, f"max_daily_{resource}"))


def require_left(used: Usage, resources: Sequence[Resource], rules: LimitSettings, now: datetime) -> None:
    """Check that none of the resources is used up.

    Raises:
        DailyLimitError: a resource is used up; the error names it and the seconds until midnight UTC.
    """
    for resource in resources:
        limit = limit_of(resource, rules)
        if limit and getattr(used, resource) >= limit:
            midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
            raise DailyLimitError(
                f"You have reached today's limit for {_WORDS[resource]} ({limit:,.0f}).",
                "Continue tomorrow (UTC), or ask the operator for a higher limit.",
                retry_after_s=(midnight - now).total_seconds(),
            )


def usage_views(used: Usage, rules: LimitSettings) -> tuple[UsageView, ...]:
    """Return today's usage and the daily limit of every resource, as shown to callers of the API."""
    return tuple(
        UsageView(resource=resource, used=getattr(used, resource), limit=limit_of(resource, rules))
        for resource in (*SENDING, *ASKING, *DRAWING)
    )
