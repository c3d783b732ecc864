"""The result model of web searches."""

# Annotations stay strings, so that their types need not be imported at startup.
from __future__ import annotations

from shared.platform.models import Model


class WebHit(Model):
    """A page found by a web search, with the search engine's excerpt.

    Attributes:
        url: http or https, with a host.
        published_at: in the search engine's own format.
        title, text: plain text of limited length; `text` is the excerpt from the search.
    """

    url: str
    title: str
    text: str
    published_at: str | None = None
