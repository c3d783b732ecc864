"""A number from a PostgreSQL view shows its rows and its SQL, and no document is
requested from the server.
"""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from local.run_all.stack import LocalStack
from samples.acl import ANNA
from tests.e2e.stack_fixture import SharedStack
from tests.e2e.web.browser import answered, ask, opened
from tests.postgres_server import postgres_shop

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def shop(stack: SharedStack) -> Iterator[LocalStack]:
    """Yield the stack with a database for Anna's department, and restore it afterwards."""
    with postgres_shop((ANNA.department,)) as source, stack.restored():
        stack.stop_host()
        stack.start_host({"DATABASES": json.dumps([source.model_dump()])})
        yield stack


@pytest.mark.parametrize(
    ("width", "locale", "kind"),
    [(320, "de-DE", "Datenbank"), pytest.param(1440, "en-GB", "database", marks=pytest.mark.nightly)],
)
def test_a_database_shows_its_rows_and_its_sql(
    shop: LocalStack, browser: Browser, width: int, locale: str, kind: str
) -> None:
    with opened(browser, shop.base_url, width=width, locale=locale) as watched:
        page = watched.page
        urls: list[str] = []
        page.on("request", lambda request: urls.append(request.url))
        for turns in (1, 2):
            ask(page, "What is the sum of amount by region?")
            expect(page.locator(".turn")).to_have_count(turns)
            answered(page)
        page.click(".turn:last-child .progress summary")
        expect(page.locator(".turn:last-child .trail")).not_to_contain_text("run_sql")
        expect(page.locator(".turn:last-child .sources .tag")).to_have_text(kind)
        page.click(".turn:last-child .markdown .chip")
        panel = page.locator(".source")
        expect(panel.locator("h2")).to_have_text("shop")
        expect(panel.locator(".tag")).to_have_text(kind)
        expect(panel.locator(".quote tr")).to_have_count(4)
        expect(panel.locator(".quote tr").nth(1)).to_contain_text("Harbour")
        expect(panel.locator("pre")).to_contain_text("SUM(amount)")
        expect(panel.locator("a")).to_have_count(0)
        assert watched.axe() == []  # checked while two answers with sources are displayed
        assert [url for url in urls if "db-shop" in url] == []
        page.keyboard.press("Escape")
        expect(page.locator(".turn:last-child .markdown .chip")).to_be_focused()
