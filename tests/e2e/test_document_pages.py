"""From an answer to its source: the address of a citation opens the page with the passage marked."""

from collections.abc import Iterator

import httpx
import pytest

from local.run_all.stack import LocalStack
from samples.acl import ANNA, BEN, SampleUser
from samples.questions import FIRST_QUESTION

pytestmark = pytest.mark.e2e


def client_of(stack: LocalStack, user: SampleUser) -> httpx.Client:
    token = stack.token(user)
    return httpx.Client(base_url=stack.base_url, headers={"Authorization": f"Bearer {token}"}, timeout=60)


@pytest.fixture(scope="module", name="anna")
def make_anna(stack: LocalStack) -> Iterator[httpx.Client]:
    with client_of(stack, ANNA) as client:
        yield client


@pytest.fixture(scope="module", name="citation")
def make_citation(anna: httpx.Client) -> dict[str, str]:
    asked = anna.post("/api/chat", json={"question": FIRST_QUESTION.text, "stream": False})
    found = asked.json()["answer"]["citations"][0]
    assert found["filename"].endswith(".pdf")
    return dict(found)


def test_the_page_opens_with_the_passage_marked_in_picture_and_text(
    anna: httpx.Client, citation: dict[str, str]
) -> None:
    page = anna.get(citation["url"], headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert '<mark id="cited-text">' in page.text
    assert '<rect id="cited"' in page.text
    view = anna.get(citation["url"], headers={"Accept": "application/json"}).json()
    assert view["cited"]["is_marked"] is True
    assert view["cited"]["quote"] == citation["quote"]
    assert view["picture"]["marks"]
    marked = [
        element["text"][mark["start"] : mark["end"]]
        for element in view["elements"]
        for mark in element["marks"]
    ]
    assert " ".join(marked).split()[:3] == citation["quote"].split()[:3]
    picture = anna.get(view["picture"]["path"])
    assert picture.content.startswith(b"\x89PNG")
    assert httpx.get(view["picture"]["image_url"], timeout=60).content == picture.content, (
        "the signed address needs nobody"
    )


def test_nobody_elses_view_shows_what_was_cited(stack: LocalStack, citation: dict[str, str]) -> None:
    with client_of(stack, BEN) as ben:
        answered = ben.get(citation["url"], headers={"Accept": "application/json"})
    assert answered.status_code == 404 or answered.json()["cited"] is None


def test_the_text_is_whole_in_parts_and_in_markdown(anna: httpx.Client, citation: dict[str, str]) -> None:
    path = f"/api/documents/{citation['doc_id']}/readable"
    texts: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        view = anna.get(path, params={"cursor": cursor}, headers={"Accept": "application/json"}).json()
        texts += [element["text"] for element in view["elements"]]
        cursor = view["cursor"]
    assert citation["quote"] in " ".join(" ".join(texts).split())
    markdown = anna.get(path, headers={"Accept": "text/markdown"})
    assert markdown.headers["content-type"].startswith("text/markdown")
    assert markdown.text.startswith("# ")
