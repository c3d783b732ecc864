"""Tests for links to originals and to moments of recordings, also in citations."""

import pytest

from shared.evidence.citations import CitationBook, marker
from shared.evidence.source_links import clock_time, moment_url, source_address, web_address
from shared.retrieval.models import Hit

TALK = Hit(
    block_id="b", doc_id="talk", filename="talk.vtt", content="We will ship in May.", start_seconds=83.9
)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "00:00"), (83.9, "01:23"), (3599.9, "59:59"), (3723, "1:02:03"), (-1, "00:00")],
)
def test_a_moment_is_minutes_and_seconds(seconds: float, expected: str) -> None:
    assert clock_time(seconds) == expected


@pytest.mark.parametrize(
    ("url", "timed"),
    [
        ("https://video.example/a.mp4", "https://video.example/a.mp4#t=83"),
        ("https://video.example/a(1).mp4?x=1#t=3", "https://video.example/a%281%29.mp4?x=1#t=83"),
        ("https://www.youtube.com/watch?v=abc&t=3", "https://www.youtube.com/watch?v=abc&t=83s"),
        ("https://youtu.be/abc", "https://youtu.be/abc?t=83s"),
        ("https://notyoutube.com/watch", "https://notyoutube.com/watch#t=83"),
        ("javascript:alert(1)", None),
        ("//video.example/a.mp4", None),
        ("https://video.example/a b", None),
        ("https://[::1", None),
        ("ftp://video.example/a.mp4", None),
        ("", None),
        (None, None),
    ],
)
def test_an_address_begins_at_the_moment(url: str | None, timed: str | None) -> None:
    assert moment_url(url, 83.9) == timed


def test_a_recording_is_cited_with_its_time_as_a_link() -> None:
    proof = CitationBook((TALK,)).prove("talk", "We will ship in May.")
    assert proof is not None
    assert proof[0].url == "/api/documents/talk/readable?t=83#t-83"
    assert marker(proof[0]) == " (Source: talk.vtt, [01:23](/api/documents/talk/readable?t=83#t-83))[1]"
    led = CitationBook((TALK,), run_id="r1").prove("talk", "We will ship in May.")
    assert led is not None
    assert led[0].url == "/api/documents/talk/readable?run=r1&n=1&t=83#cited"


def test_a_recording_from_elsewhere_is_linked_where_it_is() -> None:
    book = CitationBook((TALK,), {"talk": "https://video.example/talk"})
    proof = book.prove("talk", "We will ship in May.")
    assert proof is not None
    assert proof[0].url == "https://video.example/talk#t=83"
    hostile = CitationBook((TALK,), {"talk": "javascript:alert(1)"}).prove("talk", "We will ship in May.")
    assert hostile is not None
    assert hostile[0].url == "/api/documents/talk/readable?t=83#t-83"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        (" https://video.example/a ", "https://video.example/a"),
        ("http://video.example/a?x=1#y", "http://video.example/a?x=1#y"),
        ("/api/documents/x", None),
        ("javascript:alert(1)", None),
        ("https://video.example/" + "a" * 2000, None),
        ("", None),
        (None, None),
    ],
)
def test_only_plain_addresses_of_the_web_are_taken(url: str | None, address: str | None) -> None:
    assert web_address(url) == address


@pytest.mark.parametrize(
    ("filename", "page_number", "address"),
    [
        ("Manual.PDF", 3, "https://example.org/m#page=3"),
        ("manual.pdf", None, "https://example.org/m#top"),
        ("manual.docx", 3, "https://example.org/m#top"),
    ],
)
def test_the_original_of_a_pdf_opens_at_its_page(
    filename: str, page_number: int | None, address: str
) -> None:
    assert source_address("https://example.org/m#top", filename, page_number) == address
    assert source_address("javascript:alert(1)", filename, page_number) is None
