"""What the web answers: pages as strangers describe them, never evidence of the organisation's documents."""

from shared.models.base import Model


class WebHit(Model):
    """One page that a web search found.

    Attributes:
        url: http or https, with a host.
        title, text: plain text of bounded length; text is the part of the page that the search shows.
    """

    url: str
    title: str
    text: str
