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
from shared.platform.settings_groups.access import LimitSettings

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
    """A person's usage of the metered resources.

    Attributes:
        documents, size_bytes, blocks: ingested files, with their sizes and blocks.
        parser_seconds: time for parsing files and running SQL over tables.
        captions: pictures described by a model.
        chat_tokens: tokens read and written by models for questions and summaries.
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
        """Return the sum for each resource. Negative amounts in `other` are refunds; a sum never falls below
        0.
        """
        return Usage.model_validate({name: max(0, value + getattr(other, name)) for name, value in self})


class UsageView(Model):
    """Today's usage of one resource and its daily limit; a limit of 0 means that there is none."""

    resource: Resource = Field(description="The limited resource.")
    used: float = Field(description="Amount used today (UTC).")
    limit: float = Field(description="Daily limit; 0 means that there is no limit.")


def limit_of(resource: Resource, rules: LimitSettings) -> float:
    """Return the configured daily limit of a resource; 0 means no limit."""
    return float(getattr(rules, f"max_daily_{resource}"))


def require_left(used: Usage, resources: Sequence[Resource], rules: LimitSettings, now: datetime) -> None:
    """Raise an error if one of the resources is used up for today.

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
