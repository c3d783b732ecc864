"""Tests for GET /api/documents/{id}/pages/… and …/readable: the page image, its text and cited passages."""

import asyncio
import io
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

import httpx
import pytest
from PIL import Image

from shared.documents.page_html import POLICY
from shared.evidence.models import Citation
from shared.platform.blobs import BlobProperties
from shared.platform.errors import ConfigurationError
from shared.platform.names import DOCUMENTS, RUN_LOG, WORK
from shared.runs.models import RunAnswer, RunRecord
from shared.runs.run_files import answer_path
from shared.wiring import Services
from tests.contract.ingestion.models import DIMENSIONS, CountingEmbedder
from tests.fakes.background import background_done
from tests.fakes.stores_quality import InMemoryQualityStore
from tests.unit.functions.conftest import AsUser
from tests.unit.functions.http_app import IngestingClient, problem_of, settings_of_tests
from tests.unit.ingestion.pdf_files import PdfMaker

pytestmark = pytest.mark.attack("scripts in pages")

QUOTE = "The heron stands in shallow water."
RUN = "a" * 32
HTML = {"Accept": "text/html"}
JSON = {"Accept": "application/json"}
MARKDOWN = {"Accept": "text/markdown"}


@pytest.fixture
def pdf(tmp_path: Path) -> bytes:
    maker = PdfMaker().page().heading("Birds").paragraph("Many live here.").page().heading("Herons")
    return maker.paragraph(f"Early. {QUOTE} It waits.").write(tmp_path / "birds.pdf").read_bytes()


async def ingested(user: AsUser, durable: IngestingClient, name: str, content: bytes) -> str:
    response = await user("anna").post("/documents", files={"file": (name, content)}, data={"acl": "readers"})
    assert response.status_code == 202, response.text
    await durable.run()
    return str(response.json()["doc_id"])


async def cite(services: Services, doc_id: str, quote: str = QUOTE, page: int | None = 2) -> None:
    """Store a completed run of Ben's that cites the document as its first source."""
    record = RunRecord(
        run_id=RUN,
        thread_id="t",
        owner_id="ben",
        question="?",
        status="completed",
        created_at=datetime.now(UTC),
    )
    await services.runs.create(record)
    citation = Citation(
        n=1, doc_id=doc_id, block_id="b", filename="f", page_number=page, quote=quote, verified=True, url="u"
    )
    answer = RunAnswer(run_id=RUN, text="It does.", citations=(citation,))
    await services.blobs.write(RUN_LOG, answer_path(RUN), answer.model_dump_json().encode())


@pytest.fixture
async def doc_id(services: Services, durable: IngestingClient, user: AsUser, pdf: bytes) -> str:
    birds_id = await ingested(user, durable, "birds.pdf", pdf)
    await cite(services, birds_id)
    return birds_id


@pytest.fixture
def ben(user: AsUser) -> httpx.AsyncClient:
    return user("ben", groups=["readers"])


async def test_a_cited_page_shows_its_picture_with_the_passage_marked(
    ben: httpx.AsyncClient, doc_id: str
) -> None:
    page = await ben.get(f"/documents/{doc_id}/pages/2", params={"run": RUN, "n": "1"}, headers=HTML)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"] == POLICY
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["vary"] == "Accept"
    assert f'<mark id="cited-text">{QUOTE}</mark>' in page.text
    assert page.text.count("<rect x=") == 1
    view = (await ben.get(f"/documents/{doc_id}/pages/2", params={"run": RUN, "n": "1"}, headers=JSON)).json()
    assert view["cited"] == {
        "run_id": RUN,
        "n": 1,
        "quote": QUOTE,
        "verified": True,
        "page_number": 2,
        "is_marked": True,
    }
    assert len(view["picture"]["marks"]) == 1
    assert view["picture"]["words"] == []
    assert view["picture"]["image_url"]
    assert next(one["text"] for one in view["elements"]) == "Herons"


async def test_the_words_of_a_picture_come_if_they_are_asked_for(ben: httpx.AsyncClient, doc_id: str) -> None:
    params = {"run": RUN, "n": "1", "words": "true"}
    view = (await ben.get(f"/documents/{doc_id}/pages/2", params=params, headers=JSON)).json()
    words = [word["text"] for word in view["picture"]["words"]]
    assert words == f"Herons Early. {QUOTE} It waits.".split()
    (mark,) = view["picture"]["marks"]
    quoted = [word["area"] for word in view["picture"]["words"]][2 : 2 + len(QUOTE.split())]
    assert (mark["left"], mark["right"]) == (quoted[0]["left"], quoted[-1]["right"])


@pytest.mark.parametrize(("requested_width", "width"), [(1, 320), (320, 320), (500, 640), (960, 960)])
async def test_a_phone_gets_a_smaller_picture(
    ben: httpx.AsyncClient, doc_id: str, requested_width: int, width: int
) -> None:
    for _ in range(2):  # first drawn, then cached
        small = await ben.get(f"/documents/{doc_id}/pages/2/image", params={"width": requested_width})
        assert small.headers["content-type"] == "image/webp"
        with Image.open(io.BytesIO(small.content)) as picture:
            assert (picture.format, picture.width) == ("WEBP", width)
    whole = await ben.get(f"/documents/{doc_id}/pages/2/image", params={"width": 5000})
    assert whole.headers["content-type"] == "image/png"
    assert len(whole.content) > len(small.content)


async def test_the_picture_is_drawn_once_and_kept_with_its_version(
    services: Services, ben: httpx.AsyncClient, doc_id: str
) -> None:
    address = f"/documents/{doc_id}/pages/2/image"
    first = await ben.get(address)
    assert first.content.startswith(b"\x89PNG")
    assert first.headers["content-type"] == "image/png"
    state = await services.documents.get(doc_id)
    assert state is not None
    await services.blobs.write(DOCUMENTS, state.blob_name, b"another version")
    assert (await ben.get(address)).content == first.content
    headers = {"If-None-Match": first.headers["etag"]}
    assert (await ben.get(address, headers=headers)).status_code == 304
    # The file no longer matches the index, so a page that is not cached cannot be drawn.
    assert problem_of(await ben.get(f"/documents/{doc_id}/pages/1/image")) == (409, "ConflictError")
    assert (await ben.get(f"/documents/{doc_id}/pages/1")).status_code == 200


async def test_somebody_elses_citation_marks_nothing_and_says_nothing(
    services: Services, user: AsUser, ben: httpx.AsyncClient, doc_id: str
) -> None:
    anna = user("anna")
    plain = (await anna.get(f"/documents/{doc_id}/pages/2", headers=JSON)).json()
    assert plain["cited"] is None
    for query in (
        {"run": RUN, "n": "1"},
        {"run": "b" * 32, "n": "1"},
        {"run": "../../x", "n": "1"},
        {"run": RUN},
    ):
        assert (await anna.get(f"/documents/{doc_id}/pages/2", params=query, headers=JSON)).json() == plain
    other = await ben.get(f"/documents/{doc_id}/pages/2", params={"run": RUN, "n": "2"}, headers=JSON)
    assert other.json()["cited"] is None
    assert (await ben.get(f"/documents/{doc_id}/pages/2", params={"run": RUN, "n": "x"})).status_code == 400


async def test_a_source_counts_as_opened_once_by_whoever_asked_and_only_if_it_is_the_cited_one(
    services: Services, user: AsUser, durable: IngestingClient, ben: httpx.AsyncClient, doc_id: str
) -> None:
    other = await ingested(user, durable, "other.md", b"# Other\n\nSomething else.")
    quality = services.quality
    assert isinstance(quality, InMemoryQualityStore)

    async def opened(client: httpx.AsyncClient, path: str) -> int:
        answered = await client.get(path, params={"run": RUN, "n": "1"})
        assert answered.status_code == 200
        await background_done()
        return [record.kind for record in quality.records.values()].count("opening")

    assert await opened(ben, f"/documents/{other}/pages/1") == 0
    assert await opened(ben, f"/documents/{other}/content") == 0
    assert await opened(user("anna"), f"/documents/{doc_id}/pages/2") == 0
    assert await opened(ben, f"/documents/{doc_id}/content") == 1
    assert await opened(ben, f"/documents/{doc_id}/pages/2") == 1
    assert await opened(ben, f"/documents/{doc_id}/readable") == 1


async def test_a_page_that_cannot_be_drawn_is_shown_without_a_picture(
    ben: httpx.AsyncClient, doc_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = {"run": RUN, "n": "1"}
    monkeypatch.setattr("shared.ingestion.page_pictures.RENDER_TIMEOUT_S", 0.001)
    late = (await ben.get(f"/documents/{doc_id}/pages/2", params=query, headers=JSON)).json()
    assert (late["picture"], late["cited"]["is_marked"]) == (None, True)
    assert problem_of(await ben.get(f"/documents/{doc_id}/pages/2/image")) == (422, "BadDocumentError")
    monkeypatch.setattr(
        "shared.ingestion.page_pictures.FAILURE_KEPT", timedelta(0)
    )  # simulates that an hour has passed
    monkeypatch.setattr("shared.ingestion.page_pictures._places", BoundedSemaphore(0))
    busy = await ben.get(f"/documents/{doc_id}/pages/2/image")
    assert problem_of(busy) == (503, "NetworkError")
    view = (await ben.get(f"/documents/{doc_id}/pages/2", params=query, headers=JSON)).json()
    assert view["picture"]["path"].endswith("/pages/2/image")


@pytest.mark.attack("exhaustion")
async def test_a_version_is_given_up_after_two_pages_that_could_not_be_drawn(
    user: AsUser, durable: IngestingClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = PdfMaker()
    for _ in range(4):
        maker.page().paragraph(QUOTE)
    doc_id = await ingested(user, durable, "slow.pdf", maker.write(tmp_path / "slow.pdf").read_bytes())
    anna = user("anna")
    assert (await anna.get(f"/documents/{doc_id}/pages/4/image")).status_code == 200
    with monkeypatch.context() as patched:
        patched.setattr("shared.ingestion.page_pictures.RENDER_TIMEOUT_S", 0.001)
        for page in (1, 2):
            failed = await anna.get(f"/documents/{doc_id}/pages/{page}/image")
            assert problem_of(failed) == (422, "BadDocumentError")
    given_up = await anna.get(f"/documents/{doc_id}/pages/3/image")
    assert problem_of(given_up) == (422, "BadDocumentError")
    assert (await anna.get(f"/documents/{doc_id}/pages/4/image")).status_code == 200
    monkeypatch.setattr("shared.ingestion.page_pictures.FAILURE_KEPT", timedelta(0))
    assert (await anna.get(f"/documents/{doc_id}/pages/3/image")).status_code == 200


@pytest.mark.attack("exhaustion")
async def test_one_person_who_asks_for_many_pages_leaves_places_for_others(
    services: Services,
    user: AsUser,
    durable: IngestingClient,
    doc_id: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    maker = PdfMaker()
    for _ in range(20):
        maker.page().paragraph(QUOTE)
    slow = await ingested(user, durable, "slow.pdf", maker.write(tmp_path / "slow.pdf").read_bytes())
    download, is_fetched, may_continue = services.blobs.download, asyncio.Event(), asyncio.Event()

    async def waiting(container: str, name: str, target: Path) -> BlobProperties:
        is_fetched.set()
        await may_continue.wait()
        return await download(container, name, target)

    monkeypatch.setattr(services.blobs, "download", waiting)
    anna = user("anna")
    many = [asyncio.create_task(anna.get(f"/documents/{slow}/pages/{n}/image")) for n in range(1, 21)]
    await is_fetched.wait()
    refused = [(await many.pop()) for _ in range(12)]  # 2 requests are in progress and 6 wait
    bens = asyncio.create_task(user("ben", groups=["readers"]).get(f"/documents/{doc_id}/pages/1/image"))
    await asyncio.sleep(0.1)
    may_continue.set()
    assert (await bens).status_code == 200
    assert {problem_of(one)[0] for one in refused} == {429}
    assert {one.status_code for one in await asyncio.gather(*many)} == {200}


@pytest.mark.attack("exhaustion")
async def test_views_of_a_long_document_read_what_they_show_two_at_a_time(
    services: Services, user: AsUser, durable: IngestingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "".join(f"<p>Line {number}. {'x' * 100}</p>" for number in range(1500))
    doc_id = await ingested(user, durable, "long.html", page.encode())  # consists of nine parts
    anna, chunks, read = user("anna"), services.blobs.chunks, services.blobs.read
    at_work, most, sizes, may_continue = 0, 0, list[int](), asyncio.Event()

    async def counted(container: str, name: str, **span: Any) -> AsyncIterator[bytes]:
        async for piece in chunks(container, name, **span):
            sizes.append(len(piece))
            yield piece

    async def slow(container: str, name: str) -> bytes:
        nonlocal at_work, most
        if container == WORK:
            at_work += 1
            most = max(most, at_work)
            await may_continue.wait()
            at_work -= 1
        return await read(container, name)

    monkeypatch.setattr(services.blobs, "chunks", counted)
    monkeypatch.setattr(services.blobs, "read", slow)
    paths = [f"/documents/{doc_id}/{view}" for view in ("readable", "readable?cursor=900", "pages/3")]
    views = [asyncio.create_task(anna.get(path)) for path in paths * 5]
    for _ in range(200):
        if at_work == 2:
            break
        await asyncio.sleep(0.01)
    may_continue.set()
    answers = [one.status_code for one in await asyncio.gather(*views)]
    assert (answers.count(200), answers.count(429)) == (8, 7)
    assert most == 2
    assert sum(sizes) < 8 * 60_000  # each response has one part; the whole text is 300 KB
    assert (await anna.get(paths[0])).status_code == 200


@pytest.mark.attack("exhaustion")
async def test_a_document_of_too_many_pieces_is_refused(
    services: Services, user: AsUser, durable: IngestingClient
) -> None:
    services.settings = settings_of_tests(max_document_bytes=300_000, embedding_dimensions=DIMENSIONS)
    doc_id = await ingested(user, durable, "pieces.html", b"<p>a" * 50_001)
    document = (await user("anna").get(f"/documents/{doc_id}")).json()
    assert (document["status"], document["failure"]) == ("failed", "too_large")


async def test_views_count_as_calls(services: Services, ben: httpx.AsyncClient, doc_id: str) -> None:
    services.settings = settings_of_tests(rate_limit_per_minute=2)
    paths = [f"/documents/{doc_id}/readable", f"/documents/{doc_id}/pages/1"]
    first, second, third = [await ben.get(path) for path in (*paths, paths[0])]
    assert [first.headers["ratelimit-remaining"], second.headers["ratelimit-remaining"]] == ["1", "0"]
    assert problem_of(third) == (429, "TooManyRequestsError")


async def test_what_may_not_be_read_is_told_from_what_is_not_there_by_nothing(
    user: AsUser, ben: httpx.AsyncClient, doc_id: str
) -> None:
    absent = "0" * 24
    cited = f"?run={RUN}&n=1"
    for suffix in (f"/pages/2{cited}", f"/pages/9{cited}", "/pages/2/image", f"/readable{cited}"):
        foreign = await user("eve").get(f"/documents/{doc_id}{suffix}")
        missing = await user("eve").get(f"/documents/{absent}{suffix}")
        assert problem_of(foreign) == problem_of(missing) == (404, "DocumentNotFoundError"), suffix
        assert foreign.text.replace(doc_id, absent) == missing.text
        nobody = user("eve")
        nobody.headers.pop("authorization")
        assert (await nobody.get(f"/documents/{doc_id}{suffix}")).status_code == 401
    changed = await user("anna").put(f"/documents/{doc_id}/access", json={"acl": []})
    assert changed.status_code == 200
    for suffix in ("/pages/2", "/pages/2/image", "/readable"):
        assert (await ben.get(f"/documents/{doc_id}{suffix}")).status_code == 404


@pytest.mark.parametrize("page", ["0", "3", "x", "1.0", "99999999999"])
async def test_a_page_that_is_not_there(ben: httpx.AsyncClient, doc_id: str, page: str) -> None:
    assert (await ben.get(f"/documents/{doc_id}/pages/{page}")).status_code == 404
    assert (await ben.get(f"/documents/{doc_id}/pages/{page}/image")).status_code in (404, 422)


async def test_the_whole_text_in_three_forms(ben: httpx.AsyncClient, doc_id: str) -> None:
    query = {"run": RUN, "n": "1"}
    html = await ben.get(f"/documents/{doc_id}/readable", params=query, headers=HTML)
    assert '<mark id="cited">' in html.text
    assert 'id="page-2"' in html.text
    page = await ben.get(f"/documents/{doc_id}/pages/2", headers=MARKDOWN)
    assert page.headers["content-type"] == "text/markdown; charset=utf-8"
    assert page.text == f"## Herons\n\nEarly. {QUOTE} It waits.\n"
    markdown = await ben.get(f"/documents/{doc_id}/readable", headers=MARKDOWN)
    assert markdown.headers["content-type"] == "text/markdown; charset=utf-8"
    assert f"Herons\n\nEarly. {QUOTE} It waits." in markdown.text
    view = (await ben.get(f"/documents/{doc_id}/readable", headers=JSON)).json()
    assert [one["text"] for one in view["elements"] if one["kind"] == "heading"] == ["Birds", "Herons"]
    strange = await ben.get(f"/documents/{doc_id}/readable", params={"cursor": "x"})
    assert problem_of(strange) == (400, "InvalidRequestError")


async def test_a_document_without_pages_has_parts_and_no_picture(
    services: Services, user: AsUser, durable: IngestingClient, ben: httpx.AsyncClient
) -> None:
    content = f"# Herons\n\n- one\n- two\n\n{QUOTE}\n\n| a | b |\n|---|---|\n| 1 | 2 |\n".encode()
    doc_id = await ingested(user, durable, "m.md", content)
    await cite(services, doc_id, page=None)
    view = (await ben.get(f"/documents/{doc_id}/pages/1", headers=JSON)).json()
    kinds = [one["kind"] for one in view["elements"]]
    assert kinds == ["heading", "list_item", "list_item", "paragraph", "table"]
    assert (view["has_pages"], view["page_count"], view["picture"]) == (False, 1, None)
    answered = await ben.get(f"/documents/{doc_id}/pages/1/image")
    assert problem_of(answered)[0] == 404
    readable = await ben.get(f"/documents/{doc_id}/readable", params={"run": RUN, "n": "1"})
    assert '<mark id="cited">' in readable.text
    assert "<td>1</td><td>2</td>" in readable.text


async def test_pieces_and_pictures_go_with_their_version_and_their_document(
    services: Services, user: AsUser, durable: IngestingClient, ben: httpx.AsyncClient, doc_id: str
) -> None:
    assert (await ben.get(f"/documents/{doc_id}/pages/1/image")).status_code == 200

    async def list_version_files() -> list[str]:
        return [
            blob.name.rpartition("/")[2]
            async for blob in services.blobs.list_blobs(WORK, f"versions/{doc_id}/")
        ]

    assert await list_version_files() == [
        "manifest.json",
        "outline.json",
        "page-1.json",
        "page-1.png",
        "reading.json",
    ]
    maker = PdfMaker().page().paragraph("A new version.")
    await ingested(user, durable, "birds.pdf", bytes(maker.pdf.output()))
    assert await list_version_files() == ["manifest.json", "outline.json", "reading.json"]
    assert "A new version." in (await ben.get(f"/documents/{doc_id}/readable")).text
    assert (await user("anna").delete(f"/documents/{doc_id}")).status_code == 202
    await durable.run()
    assert await list_version_files() == []


async def test_a_new_version_that_fails_leaves_the_old_one_to_be_read(
    services: Services, user: AsUser, durable: IngestingClient, ben: httpx.AsyncClient, doc_id: str
) -> None:
    assert isinstance(services.embedder, CountingEmbedder)
    services.embedder.failures += [ConfigurationError("No such model.")] * 20
    await ingested(user, durable, "birds.pdf", bytes(PdfMaker().page().paragraph("Broken.").pdf.output()))
    state = await services.documents.get(doc_id)
    assert state is not None
    assert state.status == "failed"
    file_names = [blob.name async for blob in services.blobs.list_blobs(WORK, f"versions/{doc_id}/")]
    assert file_names == [
        f"{state.folder}{name}" for name in ("manifest.json", "outline.json", "reading.json")
    ]
    assert QUOTE in (await ben.get(f"/documents/{doc_id}/pages/2")).text


async def test_where_a_document_was_taken_from_is_kept_and_shown(
    user: AsUser, durable: IngestingClient
) -> None:
    anna = user("anna")
    cues = b"WEBVTT\n\n00:01:23.000 --> 00:01:30.000\nWelcome to the review.\n"
    form = {"source_url": "https://video.example/review"}
    response = await anna.post("/documents", files={"file": ("review.vtt", cues)}, data=form)
    await durable.run()
    path = f"/documents/{response.json()['doc_id']}"
    assert (await anna.get(path)).json()["source_url"] == form["source_url"]
    assert 'href="https://video.example/review#t=83"' in (await anna.get(f"{path}/readable?t=83")).text
    changed = await anna.put(f"{path}/access", json={"acl": ["readers"]})
    assert changed.json()["source_url"] == form["source_url"]
    again = await anna.post("/documents", files={"file": ("review.vtt", cues)})
    await durable.run()
    assert again.status_code == 202
    assert (await anna.get(path)).json()["source_url"] == form["source_url"]
    hostile = {"source_url": "javascript:alert(1)"}
    refused = await anna.post("/documents", files={"file": ("x.vtt", cues)}, data=hostile)
    assert problem_of(refused)[0] == 400
