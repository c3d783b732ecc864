"""A page that a web search found."""

# For annotations alone: the start of the app need not build every model.
from __future__ import annotations

from shared.platform.models import Model


class WebHit(Model):
    """One page that a web search found.

    Attributes:
        url: http or https, with a host.
        published_at: as the search engine says, in its own form.
        title, text: plain text of bounded length; text is the part of the page that the search shows.
    """

    url: str
    title: str
    text: str
    published_at: str | None = None
