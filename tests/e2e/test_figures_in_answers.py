"""Pictures and recordings in answers through the whole stack: shown, opened, signed, restricted, replayed."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from local.run_all.stack import LocalStack
from samples.acl import BEN
from tests.e2e.stack_client import ask, client_of, drop, wait_until_ended
from tests.unit.ingestion.figure_files import FigureMaker

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

TOPICS = {
    "cider": ("The cider press in Wrexham yields 410 litres a day.", "Yield of the cider press over the day"),
    "bakery": ("The bakery in Wrexham bakes at 240 degrees.", "Temperature of the bakery while it bakes"),
    "loom": ("The loom in Wrexham weaves 36 metres of linen an hour.", "Linen woven by the loom per hour"),
    "forge": (
        "The forge in Wrexham uses 75 kilograms of charcoal a week.",
        "Charcoal used by the forge each week",
    ),
    "mill": ("The mill in Wrexham grinds 920 kilograms of rye a day.", "Rye ground by the mill per day"),
}
QUESTIONS = {
    "cider": "How many litres does the cider press in Wrexham yield a day?",
    "bakery": "At how many degrees does the bakery in Wrexham bake?",
    "loom": "How many metres of linen does the loom in Wrexham weave an hour?",
    "forge": "How much charcoal does the forge in Wrexham use a week?",
    "mill": "How much rye does the mill in Wrexham grind a day?",
}
_PICTURE = re.compile(
    r"!\[[^\]]+\]\((http[^()\s]+/figures/\w+\.png\?[^()\s]+)\) \(Source: wrexham\.pdf, S\. (\d)\)"
)


@pytest.fixture(scope="module")
def works(stack: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a document with a picture on each of its pages, for Anna only."""
    drop(stack, "wrexham.pdf", works_pdf(tmp_path_factory.mktemp("works")))
    document = wait_until_ended(stack, "wrexham.pdf")
    assert document["status"] == "ready", document
    return str(document["doc_id"])


def works_pdf(folder: Path) -> bytes:
    maker = FigureMaker()
    for bars, (topic, (fact, caption)) in enumerate(TOPICS.items(), start=3):
        maker.page()
        maker.heading(f"The {topic}")
        maker.paragraph(f"{fact} It is looked after by two people, who note what they see.")
        maker.chart(bars=bars, caption=f"Figure {bars - 2}: {caption}")
    return maker.write(folder / "wrexham.pdf").read_bytes()


def test_answers_show_the_figure_of_their_page(anna: httpx.Client, works: str) -> None:
    illustrated_topics = []
    for page, (topic, question) in enumerate(QUESTIONS.items(), start=1):
        answer = ask(anna, question, doc_ids=[works])["answer"]
        assert TOPICS[topic][0] in answer["text"]
        pictures = _PICTURE.findall(answer["text"])
        assert [figure["image_url"] for figure in answer["figures"]] == [url for url, _ in pictures]
        assert all(httpx.get(url, timeout=60).content.startswith(b"\x89PNG") for url, _ in pictures)
        illustrated_topics += [topic] if str(page) in {number for _, number in pictures} else []
    assert len(illustrated_topics) >= 0.6 * len(QUESTIONS), illustrated_topics


def test_a_figure_can_be_opened_by_its_readers_only_and_signed_for_an_hour(
    stack: LocalStack, anna: httpx.Client, works: str
) -> None:
    run = ask(anna, QUESTIONS["bakery"], doc_ids=[works])
    (figure,) = run["answer"]["figures"]
    path = figure["path"].removeprefix("/api")
    opened = anna.get(path)
    assert (opened.status_code, opened.headers["content-type"]) == (200, "image/png")
    assert httpx.get(figure["image_url"], timeout=60).content == opened.content
    assert anna.get(path, headers={"If-None-Match": opened.headers["etag"]}).status_code == 304
    expires_at = datetime.fromisoformat(figure["image_url_expires_at"])
    assert expires_at >= datetime.now(UTC) + timedelta(hours=1)
    with client_of(stack, BEN) as ben, client_of(stack, "no.token.here") as nobody:
        assert (ben.get(path).status_code, nobody.get(path).status_code) == (404, 401)
    again = anna.get(f"/runs/{run['run_id']}").json()["answer"]["figures"][0]
    assert httpx.get(again["image_url"], timeout=60).status_code == 200


def test_the_stream_holds_no_signature_and_is_the_same_again(anna: httpx.Client, works: str) -> None:
    with anna.stream("POST", "/chat", json={"question": QUESTIONS["loom"], "doc_ids": [works]}) as live:
        first, run_id = live.read(), live.headers["x-run-id"]
    assert b"/figures/" in first
    assert b"sig=" not in first
    assert anna.get(f"/runs/{run_id}/events").content == first


@pytest.mark.parametrize("is_streamed", [False, True])
def test_chat_clients_get_pictures_that_need_no_identity(
    anna: httpx.Client, works: str, is_streamed: bool
) -> None:
    messages = [{"role": "user", "content": QUESTIONS["bakery"]}]
    body = {"model": "groundwork", "messages": messages, "stream": is_streamed}
    response_text = anna.post("/v1/chat/completions", json=body).text
    if is_streamed:
        chunks = [json.loads(line[6:]) for line in response_text.splitlines() if line.startswith("data: {")]
        deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
        text = "".join(delta.get("content") or "" for delta in deltas)
        annotations = [one for delta in deltas for one in delta.get("annotations", [])]
    else:
        message = json.loads(response_text)["choices"][0]["message"]
        text, annotations = message["content"], message["annotations"]
    addresses = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert addresses
    assert all(httpx.get(url, timeout=60).content.startswith(b"\x89PNG") for url in addresses)
    for annotation in annotations:
        cited = annotation["url_citation"]
        assert text[cited["start_index"] : cited["end_index"]].strip().startswith("(Source: wrexham.pdf")


def test_pictures_among_search_results_can_be_followed(anna: httpx.Client, works: str) -> None:
    body = {"query": "Figure: charcoal used by the forge", "filters": {"doc_id": works}}
    results = anna.post("/search", json=body).json()["results"]
    images = [result for result in results if result["block_type"] == "image"]
    assert images
    opened = [httpx.get(result["image_url"], timeout=60).content for result in images]
    assert all(content.startswith(b"\x89PNG") for content in opened)
    assert not [result for result in images if "content" in result]


def test_no_log_holds_a_signature(stack: LocalStack, works: str) -> None:
    logs = list(stack.data.rglob("*.log"))
    assert logs
    assert not [path.name for path in logs if re.search(rb"[?&]sig=[A-Za-z0-9%]{8}", path.read_bytes())]


def test_a_recording_is_cited_with_a_link_to_its_moment(stack: LocalStack, anna: httpx.Client) -> None:
    cues = (
        "WEBVTT\n\n00:00:05.000 --> 00:00:09.000\n<v Mia>Welcome to the review of the ferry in Wrexham.\n\n"
        "00:01:23.000 --> 00:01:30.000\n<v Mia>The ferry in Wrexham carries 48 passengers on each crossing.\n"
    )
    drop(stack, "review.vtt", cues.encode())
    document = wait_until_ended(stack, "review.vtt")
    run = ask(anna, "How many passengers does the ferry in Wrexham carry?", doc_ids=[document["doc_id"]])
    answer = run["answer"]
    (citation, *_) = [one for one in answer["citations"] if "48 passengers" in one["quote"]]
    seconds = int(citation["start_seconds"])
    path = f"/api/documents/{document['doc_id']}/readable"
    assert citation["url"] == f"{path}?run={run['run_id']}&n={citation['n']}&t={seconds}#cited"
    view = anna.get(citation["url"].removeprefix("/api")).text
    assert f'id="t-{seconds}"' in view
    assert '<mark id="cited">' in view
    assert (
        f"(Source: review.vtt, [{seconds // 60:02}:{seconds % 60:02}]({citation['url']}))" in answer["text"]
    )
