"""Which kind of answer a caller prefers."""

import pytest

from functions.http.conditions import preferred

HTML, JSON, MARKDOWN = "text/html", "application/json", "text/markdown"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (None, HTML),
        ("", HTML),
        ("*/*", HTML),
        (BROWSER, HTML),
        ("application/json", JSON),
        ("application/json, */*;q=0.1", JSON),
        ("application/json;q=0.5, text/html", HTML),
        ("text/markdown", MARKDOWN),
        ("TEXT/Markdown ; Q=0.9, text/html;q=0.8", MARKDOWN),
        ("text/*;q=0.5, application/json;q=0.4", HTML),
        ("text/html;q=0, */*", JSON),
        ("image/png", HTML),
        (";;,,=,q", HTML),
        ("application/json;q=nan", JSON),
    ],
)
def test_the_best_that_is_offered(accept: str | None, kind: str) -> None:
    assert preferred(accept, (HTML, JSON, MARKDOWN)) == kind
