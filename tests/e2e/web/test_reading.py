"""Reading documents: pages can be enlarged, figures link to their page, and documents start with a
preview.
"""

import pytest
from playwright.sync_api import Browser, Locator, expect

from local.run_all.stack import LocalStack
from samples.acl import ANNA
from tests.e2e.stack_client import client_of
from tests.e2e.test_documents import send, until_ended
from tests.e2e.web.browser import answered, ask, opened

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
FACT = "What is the maximum operating pressure of the Heron 400?"


def _width(picture: Locator) -> float:
    box = picture.bounding_box()
    assert box is not None
    return box["width"]


@pytest.mark.parametrize("width", [390, pytest.param(1280, marks=pytest.mark.nightly)])
def test_a_cited_page_is_enlarged(stack: LocalStack, browser: Browser, width: int) -> None:
    with opened(browser, stack.base_url, width=width) as watched:
        page = watched.page
        ask(page, FACT)
        answered(page)
        page.click(".markdown .chip >> nth=0")
        page.wait_for_selector(".page-picture .mark")
        picture = page.locator(".page-picture")
        mark = page.locator(".page-picture .mark").first
        before = _width(picture)
        picture.click(position={"x": 40, "y": 40})
        expect(picture).to_have_class("page-picture there zoomed")
        assert _width(picture) == pytest.approx(before * 2, rel=0.02)
        page.focus(".zoom-box")
        page.keyboard.press("+")
        assert _width(picture) == pytest.approx(before * 3, rel=0.02)
        expect(mark).to_be_in_viewport()
        page.keyboard.press("0")
        for _ in range(3):
            page.click("[aria-label=Enlarge]")
            expect(mark).to_be_in_viewport()
        page.focus(".zoom-box")
        page.keyboard.press("0")
        assert _width(picture) == pytest.approx(before, rel=0.02)
        if width > 1000:
            page.click("[aria-label='Full width']")
            expect(mark).to_be_in_viewport()
            assert _width(picture) > 1.8 * before
        assert watched.axe() == []
        page.keyboard.press("Escape")
        expect(page.locator(".markdown .chip").first).to_be_focused()


@pytest.mark.parametrize("width", [390, 1440])
def test_the_zoom_buttons_stay_while_a_page_is_scrolled(
    stack: LocalStack, browser: Browser, width: int
) -> None:
    with opened(browser, stack.base_url, width=width) as watched:
        page = watched.page
        ask(page, FACT)
        answered(page)
        page.click(".markdown .chip >> nth=0")
        page.click("[aria-label='Full width']")
        page.wait_for_selector(".page-picture .mark")
        for _ in range(3):
            page.click("[aria-label=Enlarge]")
        page.locator(".source .pages").scroll_into_view_if_needed()
        expect(page.locator(".panel-title")).not_to_be_in_viewport()
        reduce = page.locator("[aria-label=Reduce]")
        expect(reduce).to_be_in_viewport(ratio=1)
        before = _width(page.locator(".page-picture"))
        reduce.click()
        assert _width(page.locator(".page-picture")) == pytest.approx(before * 2 / 3, rel=0.02)
        expect(page.locator(".page-picture .mark").first).to_be_in_viewport()
        assert watched.axe() == []


def test_a_figure_leads_to_its_page(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        ask(page, FACT)
        answered(page)
        page.click(".figure-button")
        expect(page.locator(".panel-title")).to_contain_text("Heron 400")
        expect(page.locator(".source .pages")).to_contain_text("Page 3 of 13")
        page.keyboard.press("Escape")
        page.click(".markdown .place >> text=p. 3")
        expect(page.locator(".source .pages")).to_contain_text("Page 3 of 13")
        page.reload()
        expect(page.locator(".source .pages")).to_contain_text("Page 3 of 13")


def test_a_document_begins_with_a_preview_and_is_edited_on_request(
    stack: LocalStack, browser: Browser
) -> None:
    with opened(browser, stack.base_url, path="/?view=documents") as watched:
        page = watched.page
        page.click("table.documents a >> text=Onboarding Guide")
        expect(page.locator(".preview")).to_contain_text("core time")
        page.click("table.documents a >> text=Heron 400: Installation Guide")
        expect(page.locator(".preview .page-picture.there")).to_be_visible()
        expect(page.locator(".metadata input")).to_have_count(0)


def test_a_tiny_document_shows_its_text_once(stack: LocalStack, browser: Browser) -> None:
    words = "The theta clamp opens at 3.2 bar."
    with client_of(stack, ANNA) as anna:
        doc_id = send(anna, "theta-clamp.txt", words.encode())["doc_id"]
        assert until_ended(anna, doc_id)["status"] == "ready"
        assert anna.get(f"/documents/{doc_id}").json()["summary_brief"] == words
        with opened(browser, stack.base_url, path="/?view=documents") as watched:
            page = watched.page
            page.click("table.documents a >> text=theta-clamp.txt")
            expect(page.locator(".preview")).to_contain_text(words)
            expect(page.locator(".source").get_by_text(words)).to_have_count(1)
            page.click("table.documents a >> text=Onboarding Guide")
            expect(page.locator(".source-body > p", has_text="This guide tells")).to_be_visible()
        anna.delete(f"/documents/{doc_id}")
