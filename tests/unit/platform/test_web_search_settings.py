"""The web is searched only where an address says so, and questions never go there in the clear."""

import pytest
from pydantic import ValidationError

from shared.wiring import build_services
from tests.fakes.services import fake_settings


def test_the_web_is_not_searched_unless_it_is_configured() -> None:
    assert build_services(fake_settings()).web_search is None


@pytest.mark.parametrize("url", ["https://search.example.org/search", "http://127.0.0.1:1/search"])
def test_https_or_this_machine_may_be_asked(url: str) -> None:
    assert build_services(fake_settings(web_search_url=url)).web_search is not None


@pytest.mark.parametrize(
    "url",
    [
        "http://search.example.org/search",
        "http://127.0.0.1.example.org/search",
        "search.example.org",
        "ftp://127.0.0.1/search",
        "https://",
        "https://me:it@search.example.org/search",
        "https://search.example.org/search?q=a",
        "https://search.example.org/search#a",
    ],
)
def test_any_other_address_stops_the_start(url: str) -> None:
    with pytest.raises(ValidationError, match="WEB_SEARCH_URL"):
        fake_settings(web_search_url=url)


@pytest.mark.parametrize(
    "changes",
    [{"web_search_key_header": "X-Key: a"}, {"web_search_key": "a\r\nb"}, {"web_search_key_header": "ü"}],
)
def test_what_no_header_can_carry_stops_the_start(changes: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="WEB_SEARCH_KEY"):
        fake_settings(**changes)


def test_the_key_is_not_shown_with_the_settings() -> None:
    assert "sesame" not in repr(fake_settings(web_search_key="sesame"))
