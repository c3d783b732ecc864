"""The list of documents in the page: found, ordered, kept in the address, and changed several at a time."""

import asyncio
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from local.run_all.stack import LocalStack
from samples.acl import ANNA
from tests.e2e.stack_client import client_of, eventually
from tests.e2e.stack_services import services_of
from tests.e2e.test_documents import send, until_ended
from tests.e2e.web.browser import measure, only_measured, opened

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
    """Three documents of Anna's alone; id by name."""
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
        # The words go to the API's search, and into no address of a page.
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
        page.fill("dialog input", "Ben")
        page.click("dialog .picker-list li >> text=Ben Okafor")
        expect(page.locator(".notice")).to_contain_text("3 documents changed.")
        assert all("ben" in detail(name).json()["acl"] for name in NAMES)
        bar.get_by_role("button", name="Move").click()
        page.fill("dialog input", "lambda")
        page.press("dialog input", "Enter")
        eventually(lambda: all(detail(name).json()["project_id"] == "lambda" for name in NAMES))
        assert all("ben" in detail(name).json()["acl"] for name in NAMES)
        assert watched.axe() == []
        bar.get_by_role("button", name="Delete").click()
        page.click("dialog >> text=Delete >> nth=-1")
        eventually(lambda: all(detail(name).status_code == 404 for name in NAMES))
        expect(bar).to_have_count(0)


async def _change_rows(stack: LocalStack, rows: list[dict[str, Any]], *, is_added: bool) -> None:
    async with services_of(stack) as services:
        index = services.documents_index
        for start in range(0, len(rows), 1000):
            some = rows[start : start + 1000]
            await (index.upload(some) if is_added else index.delete([row["doc_id"] for row in some]))


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run it in a thread: this one has the browser's event loop."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, work).result()


@only_measured
def test_how_soon_five_thousand_documents_are_listed(
    stack: LocalStack, browser: Browser, report: Path
) -> None:
    moment = datetime.now(UTC)
    rows: list[dict[str, Any]] = [
        {
            "doc_id": f"{number:024d}",
            "filename": f"contract-{number:04d}.pdf",
            "title": f"Contract {number}",
            "status": "ready",
            "upload_date": (moment - timedelta(minutes=number)).isoformat(),
            "access_control_list": [ANNA.user_id],
            "tags": ["contract", f"year-{number % 20}"],
        }
        for number in range(MANY)
    ]
    _run(_change_rows(stack, rows, is_added=True))
    with opened(browser, stack.base_url) as watched:
        times = []
        for _ in range(5):
            watched.page.goto(stack.base_url)
            watched.page.wait_for_selector("#question")
            times.append(watched.page.evaluate(SHOW))
        watched.page.fill(".page-head input", "contract-4711.pdf")
        expect(watched.page.locator("table.documents tbody tr").first).to_contain_text("contract-4711.pdf")
    _run(_change_rows(stack, rows, is_added=False))
    measure(report, document_list_ms=round(sorted(times)[len(times) // 2]))
