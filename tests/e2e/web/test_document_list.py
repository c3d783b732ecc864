"""The list of documents in the page: search, order, state in the URL, and bulk changes."""

import asyncio
import re
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from local.run_all.stack import LocalStack
from samples.acl import ANNA
from shared.documents.state import DocumentState, Rights
from tests.e2e.stack_client import client_of, eventually
from tests.e2e.stack_services import services_of
from tests.e2e.test_documents import send, until_ended
from tests.e2e.web.browser import answered, ask, measure, only_measured, opened
from tests.e2e.web.test_links import READ

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
NAMES = ("lambda-contract-1.md", "lambda-contract-2.md", "lambda-contract-12.md")
MANY = 5_000
SHOW = """async () => {
  const started = performance.now();
  document.querySelector(".sidebar-foot .nav-link").click();
  while (!document.querySelector("table.documents tbody tr")) await new Promise(requestAnimationFrame);
  return performance.now() - started;
}"""


@pytest.fixture
def contracts(stack: LocalStack) -> Iterator[dict[str, str]]:
    """Yield three documents of Anna's only, as ids by name."""
    with client_of(stack, ANNA) as anna:
        ids = {name: send(anna, name, f"# {name}\n\nA contract.".encode())["doc_id"] for name in NAMES}
        assert {until_ended(anna, doc_id)["status"] for doc_id in ids.values()} == {"ready"}
        yield ids
        for doc_id in ids.values():
            anna.delete(f"/documents/{doc_id}")


def test_search_and_order_stay_in_the_address(
    stack: LocalStack, browser: Browser, contracts: dict[str, str]
) -> None:
    with opened(browser, stack.base_url, path="/?view=documents") as watched:
        page = watched.page
        requested: list[str] = []
        page.on("request", lambda request: requested.append(request.url.partition("#")[0]))
        rows = page.locator("table.documents tbody tr")
        page.fill(".page-head input", "lambda-contract-12")
        expect(rows.first).to_contain_text("lambda-contract-12.md")
        assert "#q=lambda-contract-12" in page.url
        page.reload()
        expect(page.locator(".page-head input")).to_have_value("lambda-contract-12")
        expect(rows.first).to_contain_text("lambda-contract-12.md")
        # The search words are sent to the API, and occur in no URL of a page.
        assert not [url for url in requested if "lambda" in url and "/api/documents" not in url]
        page.fill(".page-head input", "")
        page.click(".sort >> text=Title")
        expect(page.locator("th[aria-sort=ascending]")).to_have_count(1)
        expect(rows.first).not_to_contain_text("lambda")
        titles = [title.split("\n")[0] for title in rows.locator("th").all_inner_texts()]
        assert titles == sorted(titles)
        assert "#sort=title" in page.url


def test_several_documents_are_shared_moved_and_deleted_at_once(
    stack: LocalStack, browser: Browser, contracts: dict[str, str]
) -> None:
    headers = {"Authorization": f"Bearer {stack.token(ANNA)}"}

    def detail(name: str) -> httpx.Response:
        return httpx.get(f"{stack.base_url}/api/documents/{contracts[name]}", headers=headers)

    with opened(browser, stack.base_url, path="/?view=documents#q=lambda-contract") as watched:
        page = watched.page
        for name in NAMES:
            page.check(f"[aria-label='Select {name}']")
        bar = page.locator(".selection")
        expect(bar).to_contain_text("3 selected")
        bar.get_by_role("button", name="Share").click()
        expect(page.locator("dialog")).to_contain_text("No one else has access.")
        page.fill("dialog input", "Ben")
        page.click("dialog .picker-list li >> text=Ben Okafor")
        expect(page.locator(".notice")).to_contain_text("3 documents changed.")
        assert all("ben" in detail(name).json()["acl"] for name in NAMES)
        bar.get_by_role("button", name="Move").click()
        page.fill("dialog input", "lambda/deals")
        page.press("dialog input", "Enter")
        eventually(lambda: all(detail(name).json()["project_id"] == "lambda/deals" for name in NAMES))
        rows = page.locator("table.documents tbody tr", has_text="lambda-contract")
        expect(rows.first.locator("td")).to_contain_text(["", "", "lambda/deals", "You", "Ben Okafor"])
        page.fill(".page-head input", "")
        tree = page.locator(".projects")
        for project in ("lambda", "deals"):
            tree.get_by_role("button", name=project).click()
            expect(page.locator("table.documents tbody tr")).to_have_count(3)
        assert "project_id=lambda%2Fdeals" in page.url
        expect(bar).to_have_count(0)  # a search and each change of the project clear the selection
        page.check("[aria-label='Select all that are shown']")
        expect(bar).to_contain_text("3 selected")
        page.click(".sort >> text=Title")
        expect(page.locator("th[aria-sort=ascending]")).to_have_count(1)
        expect(bar).to_contain_text("3 selected")
        assert all("ben" in detail(name).json()["acl"] for name in NAMES)
        assert watched.axe() == []
        bar.get_by_role("button", name="Delete").click()
        page.click("dialog >> text=Delete >> nth=-1")
        eventually(lambda: all(detail(name).status_code == 404 for name in NAMES))
        expect(bar).to_have_count(0)


def test_a_search_requires_all_words_first(
    stack: LocalStack, browser: Browser, contracts: dict[str, str]
) -> None:
    with opened(browser, stack.base_url, path="/?view=documents") as watched:
        page = watched.page
        rows = page.locator("table.documents tbody tr")
        total = page.locator(".list > [role=status]")
        page.fill(".page-head input", "lambda contract 12")
        expect(rows).to_have_count(1)
        expect(rows).to_contain_text("lambda-contract-12.md")
        expect(total).to_contain_text("One document")
        total.get_by_role("button", name="Also show documents with only some").click()
        expect(rows.nth(2)).to_be_visible()
        expect(rows.first).to_contain_text("lambda-contract-12.md")
        assert "match=any" in page.url
        page.fill(".page-head input", "lambda contr")  # the word is incomplete
        expect(rows).to_have_count(3)
        page.fill(".page-head input", "lambda zebra")
        expect(rows).to_have_count(0)
        page.click("text=Also show documents with only some of these words")
        expect(rows.first).to_contain_text("lambda-contract")


@pytest.fixture
def namesakes(stack: LocalStack) -> Iterator[list[str]]:
    """Yield the ids of two documents of Anna's with the same name, in different folders."""
    with client_of(stack, ANNA) as anna:
        ids = [
            send(anna, "kappa-price.md", f"# Kappa press\n\n{text}".encode(), folder=folder)["doc_id"]
            for folder, text in (
                ("kappa/2023", "The kappa press costs 812 euros in the catalogue of 2023."),
                ("kappa/2024", "The kappa press costs 930 euros in the catalogue of 2024."),
            )
        ]
        assert {until_ended(anna, doc_id)["status"] for doc_id in ids} == {"ready"}
        yield ids
        for doc_id in ids:
            anna.delete(f"/documents/{doc_id}")


def _exports(page: Page) -> list[str]:
    """Return the last answer as copied, without and with formatting, and as saved."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("[aria-label='Copy with sources']")
    expect(page.locator(".notice")).to_contain_text("Copied")
    with page.expect_download() as download:
        page.click("[aria-label='Save as Markdown']")
    return [*page.evaluate(READ), download.value.path().read_text(encoding="utf-8")]


def test_equal_names_are_told_apart_by_their_folders(
    stack: LocalStack, browser: Browser, namesakes: list[str]
) -> None:
    with opened(browser, stack.base_url, path="/?view=documents") as watched:
        page = watched.page
        page.fill(".page-head input", "kappa-price.md")
        rows = page.locator("table.documents tbody tr")
        expect(rows).to_have_count(2)
        for folder in ("2023", "2024"):
            expect(rows.filter(has_text=f"· {folder}")).to_have_count(1)
            page.check(f"[aria-label='Select kappa-price.md ({folder})']")
        page.goto(stack.base_url)
        page.click(".toggle >> text=Scope")
        page.fill("dialog input[type=search]", "kappa-price.md")
        for folder in ("2023", "2024"):
            page.locator("dialog label", has_text=f"· {folder}").locator("input").check()
        page.click("dialog >> text=Done")
        expect(page.locator(".scoped li")).to_contain_text(["2023", "2024"])
        ask(page, "What does the kappa press cost in the catalogue of 2023 and of 2024?")
        answered(page)
        sources = page.locator(".sources li")
        expect(sources).to_have_count(2)
        for folder in ("2023", "2024"):
            expect(sources.filter(has_text=folder)).to_have_count(1)
        for text in _exports(page):
            assert set(re.findall(r"kappa-price.md, (\d+)", text)) == {"2023", "2024"}
        chip = sources.filter(has_text="2024").locator(".chip").first
        expect(chip).to_have_attribute("aria-label", re.compile("kappa-price.md, 2024"))
        chip.click()
        expect(page.locator(".source")).to_contain_text("kappa-price.md · 2024")
        assert watched.axe() == []


def _with_languages(route: Route) -> None:
    """Add a facet with three values, which the few samples don't have."""
    counts = route.fetch().json()
    languages = [{"value": "en", "count": 8}, {"value": "de", "count": 3}, {"value": "und", "count": 3}]
    route.fulfill(json={**counts, "language": languages})


@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
def test_the_list_is_visible_without_scrolling(stack: LocalStack, browser: Browser, locale: str) -> None:
    with opened(browser, stack.base_url, path="/?view=documents", width=1280, locale=locale) as watched:
        page = watched.page
        page.set_viewport_size({"width": 1280, "height": 800})
        page.route("**/api/documents/facets*", _with_languages)
        page.reload()
        expect(page.locator("table.documents tbody tr").nth(4)).to_be_in_viewport(ratio=1)
        page.click(".facet-toggle")
        expect(page.locator(".facet", has_text=re.compile("Unknown|Unbekannt"))).to_have_count(1)
        page.locator(".facet .facet-value", has_text=re.compile("English|Englisch")).click()
        expect(page.locator("table.documents")).not_to_contain_text("Wartungsplan")
        page.click(".facet-toggle")
        expect(page.locator(".facet-row [aria-pressed=true]")).to_have_count(1)
        assert watched.axe() == []
        page.unroute_all(behavior="ignoreErrors")


def _with_types(route: Route) -> None:
    """Report types that occur often enough to be offered as filters."""
    types = [{"value": value, "count": 3} for value in ("report", "price_list", "blueprint")]
    route.fulfill(json={**route.fetch().json(), "document_type": types})


def test_document_types_are_shown_in_the_readers_language(
    stack: LocalStack, browser: Browser, contracts: dict[str, str]
) -> None:
    with client_of(stack, ANNA) as anna:
        unknown = f"/documents/{contracts[NAMES[0]]}"
        anna.patch(unknown, json={"document_type": "blueprint"}).raise_for_status()
        eventually(lambda: anna.get(unknown).json()["document_type"] == "blueprint", "the corrected type")
    path = "/?view=documents"
    with opened(browser, stack.base_url, path=path, width=1600, locale="de-DE") as watched:
        page = watched.page
        page.route("**/api/documents/facets*", _with_types)
        page.reload()
        rows = page.locator("table.documents tbody tr")
        expect(rows.filter(has_text="annual-report-2024").locator("td").nth(1)).to_have_text("Bericht")
        expect(rows.filter(has_text="price-list-2025").locator("td").nth(1)).to_have_text("Preisliste")
        expect(rows.filter(has_text=NAMES[0]).locator("td").nth(1)).to_have_text("blueprint")
        page.click(".facet-toggle")
        for name in ("Preisliste", "blueprint"):
            expect(page.locator(".facet .facet-value", has_text=name)).to_have_count(1)
        page.locator(".facet .facet-value", has_text="Bericht").click()
        expect(rows.filter(has_text="price-list-2025")).to_have_count(0)
        expect(rows.filter(has_text="annual-report-2024")).to_have_count(1)
        assert set(rows.locator("td:nth-child(3)").all_inner_texts()) == {"Bericht"}
        assert "document_type=report" in page.url
        page.click("table.documents a >> text=annual-report-2024.pdf")
        kind = page.locator(".metadata .field", has_text="Art")
        expect(kind.locator("bdi")).to_have_text("Bericht")
        assert watched.axe() == []
        page.unroute_all(behavior="ignoreErrors")


def test_a_long_list_begins_with_a_screenful(stack: LocalStack, browser: Browser) -> None:
    listed = _listed(60)
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        rest = _hold_rest(page, listed)
        rows = page.locator("table.documents tbody tr")
        expect(rows).to_have_count(25)
        expect(page.locator(".list")).not_to_contain_text("More")  # the other rows are being loaded
        expect(page.locator(".list > [role=status]")).to_contain_text("documents")  # counted first
        assert ["limit=100" in one.request.url for one in rest] == [True]
        rest[0].fulfill(json={"documents": listed, "count": 60, "cursor": None})
        expect(rows).to_have_count(60)
        page.unroute_all(behavior="ignoreErrors")


def test_a_rest_that_failed_to_load_is_not_hidden(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        rest = _hold_rest(page, _listed(60))
        expect(page.locator("table.documents tbody tr")).to_have_count(25)
        expect(page.locator(".list > [role=status]")).to_contain_text("documents")
        rest[0].fulfill(
            status=503, json={"type": "urn:groundwork:error:Test", "status": 503, "detail": "Busy."}
        )
        expect(page.locator(".list")).to_contain_text("More")
        page.unroute_all(behavior="ignoreErrors")


def _listed(count: int) -> list[dict[str, Any]]:
    """Return documents as the list shows them."""
    return [
        {
            "doc_id": f"{number:024d}",
            "filename": f"long-{number}.md",
            "status": "ready",
            "tags": [],
            "access_via": ["owner"],
        }
        for number in range(count)
    ]


def _hold_rest(page: Page, listed: list[dict[str, Any]]) -> list[Route]:
    """Open the list and answer its first request only. Later requests are appended to the returned list."""
    rest: list[Route] = []

    def answer(route: Route) -> None:
        if "limit=25" in route.request.url:
            route.fulfill(json={"documents": listed[:25], "count": 25, "cursor": "next"})
        else:
            rest.append(route)

    page.route(re.compile(r"/api/documents\?limit="), answer)
    page.click(".sidebar-foot .nav-link >> nth=0")
    return rest


def _rows() -> list[dict[str, Any]]:
    """Return index rows for 5,000 documents of Anna's."""
    moment = datetime.now(UTC)
    return [
        {
            "doc_id": f"{number:024d}",
            "filename": f"contract-{number:04d}.pdf",
            "title": f"Contract {number}",
            "status": "ready",
            "upload_date": (moment - timedelta(minutes=number)).isoformat(),
            "owner_id": ANNA.user_id,
            "access_control_list": [ANNA.user_id],
            "project_id": f"region-{number % 7}/site-{number % 3}",
            "tags": ["contract", f"year-{number % 20}"],
        }
        for number in range(MANY)
    ]


def _state_of(row: dict[str, Any]) -> DocumentState:
    rights = Rights(owner_id=row["owner_id"], acl=tuple(row["access_control_list"]))
    return DocumentState(
        doc_id=row["doc_id"],
        blob_name=row["filename"],
        filename=row["filename"],
        status="ready",
        rights=rights,
        wanted_rights=rights,
        blob_etag="1",
        content_hash="hash",
        upload_date=row["upload_date"],
        updated_at=row["upload_date"],
    )


async def _add(stack: LocalStack, rows: list[dict[str, Any]]) -> None:
    async with services_of(stack) as services:
        for start in range(0, len(rows), 1000):
            await services.documents_index.upload(rows[start : start + 1000])
        for row in rows:  # a document is listed only if it has a row in the table of documents
            await services.documents.create(_state_of(row))


async def _remove(stack: LocalStack, rows: list[dict[str, Any]]) -> None:
    async with services_of(stack) as services:
        for row in rows:
            state = await services.documents.get(row["doc_id"])
            if state is not None:
                await services.documents.delete(state)
        for start in range(0, len(rows), 1000):
            await services.documents_index.delete([row["doc_id"] for row in rows[start : start + 1000]])


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in a thread, because this thread runs the browser's event loop."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, work).result()


@only_measured
def test_how_soon_five_thousand_documents_are_listed(
    stack: LocalStack, browser: Browser, report: Path
) -> None:
    rows = _rows()
    _run(_add(stack, rows))
    with opened(browser, stack.base_url) as watched:
        times = []
        for _ in range(5):
            watched.page.goto(stack.base_url)
            watched.page.wait_for_selector("#question")
            times.append(watched.page.evaluate(SHOW))
        watched.page.fill(".page-head input", "contract-4711.pdf")
        expect(watched.page.locator("table.documents tbody tr").first).to_contain_text("contract-4711.pdf")
    _run(_remove(stack, rows))
    measure(report, document_list_ms=round(sorted(times)[len(times) // 2]))
