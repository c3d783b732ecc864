"""From an answer to its source: the URL of a citation opens the page with the passage marked."""

import httpx
import pytest

from local.run_all.stack import LocalStack
from samples.acl import ANNA
from tests.e2e.stack_client import ask, client_of

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module", name="citation")
def make_citation(stack: LocalStack) -> dict[str, str]:
    with client_of(stack, ANNA) as anna:
        citation = ask(anna)["answer"]["citations"][0]
    assert citation["filename"].endswith(".pdf")
    return dict(citation)


def test_the_page_opens_with_the_passage_marked_in_picture_and_text(
    anna: httpx.Client, citation: dict[str, str]
) -> None:
    page = anna.get(citation["url"].removeprefix("/api"), headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert '<mark id="cited-text">' in page.text
    assert '<rect id="cited"' in page.text
    view = anna.get(citation["url"].removeprefix("/api"), headers={"Accept": "application/json"}).json()
    assert view["cited"]["is_marked"] is True
    assert view["cited"]["quote"] == citation["quote"]
    assert view["picture"]["marks"]
    marked = [
        element["text"][mark["start"] : mark["end"]]
        for element in view["elements"]
        for mark in element["marks"]
    ]
    assert " ".join(marked).split()[:3] == citation["quote"].split()[:3]
    picture = anna.get(view["picture"]["path"].removeprefix("/api"))
    assert picture.content.startswith(b"\x89PNG")
    assert httpx.get(view["picture"]["image_url"], timeout=60).content == picture.content, (
        "the signed address needs nobody"
    )


def test_the_text_is_whole_in_parts_and_in_markdown(anna: httpx.Client, citation: dict[str, str]) -> None:
    path = f"/documents/{citation['doc_id']}/readable"
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
