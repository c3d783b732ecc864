"""Copied answers and links remain usable outside the page: in a mail, and without a session."""

import re
from html import unescape

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from local.run_all.stack import LocalStack
from tests.e2e.web.browser import answered, ask, opened

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
FACT = "What is the maximum operating pressure of the Heron 400?"
READ = """async () => {
  const [item] = await navigator.clipboard.read();
  const text = async (type) => (await item.getType(type)).text();
  return [await text("text/plain"), await text("text/html")];
}"""


def _assert_shown_in_a_mail(page: Page, html: str, count: int) -> None:
    """Paste into an unrelated page, as a mail client would, and check that all pictures are visible."""
    mail = page.context.new_page()
    mail.goto("about:blank")
    mail.set_content(html)
    mail.wait_for_function(
        "count => [...document.images].filter((one) => one.naturalWidth > 100).length === count", arg=count
    )
    mail.close()


def test_a_copied_answer_has_links_and_pictures_that_work(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url, locale="de-DE") as watched:
        page = watched.page
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        ask(page, FACT)
        answered(page)
        page.click("[aria-label='Mit Quellen kopieren']")
        expect(page.locator(".notice")).to_contain_text("kopiert")
        plain, html = page.evaluate(READ)
        assert "S. 4" in plain
        assert "[1] heron-400-manual.pdf, S. 4: “" in plain
        assert "Source:" not in plain + html
        assert "[Figure 1: The Heron 400 with motor" in plain  # the document's own caption
        assert not re.search(r"Local caption|pixels", plain + html)  # the local model saw no picture
        assert not re.search(
            r"\]\(|\*\*|!\[|^#|sig=", plain, re.MULTILINE
        )  # no Markdown, and no URL that expires
        assert "sig=" not in html
        sources = [unescape(found) for found in re.findall(r'<img [^>]*src="([^"]+)"', html)]
        links = [unescape(found) for found in re.findall(r'<a [^>]*href="([^"]+)"', html)]
        assert sources
        assert all(source.startswith("data:image/png;base64,") for source in sources)
        assert any("page=3" in link for link in links)  # the page that contains the figure
        cited = [link for link in links if link in plain]
        assert any("page=4" in link for link in cited)
        _assert_shown_in_a_mail(page, html, len(sources))
        # A colleague without a session must sign in, and then sees the cited page.
        page.context.clear_cookies()
        page.goto(cited[0])
        page.click("button[value=anna]")
        expect(page.locator(".source .pages")).to_contain_text("Seite 4 von 13")


def test_a_citation_link_without_a_session_leads_to_its_page(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        ask(page, FACT)
        answered(page)
        path = page.evaluate(
            "fetch('/api/runs/' + document.querySelector('[data-run]').dataset.run)"
            ".then((answer) => answer.json()).then((run) => run.answer.citations[0].url)"
        )
        page.context.clear_cookies()
        assert httpx.get(stack.base_url + path).status_code == 401
        page.goto(stack.base_url + path)
        page.click("button[value=anna]")
        expect(page.locator(".page-picture .mark").first).to_be_visible()
