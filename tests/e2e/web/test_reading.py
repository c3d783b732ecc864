"""Reading documents: pages can be enlarged, figures link to their page, and documents start with a
preview.
"""

import io
from collections.abc import Callable

import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, Route, expect

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


def _top(part: Locator) -> float:
    box = part.bounding_box()
    assert box is not None
    return box["y"]


def _png(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height)).save(file, "PNG")
    return file.getvalue()


def _open_citation(page: Page) -> None:
    """Ask a question and open the first source of its answer."""
    ask(page, FACT)
    answered(page)
    page.click(".markdown .chip >> nth=0")


@pytest.mark.parametrize("width", [390, pytest.param(1280, marks=pytest.mark.nightly)])
def test_a_cited_page_is_enlarged(stack: LocalStack, browser: Browser, width: int) -> None:
    with opened(browser, stack.base_url, width=width) as watched:
        page = watched.page
        _open_citation(page)
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


@pytest.mark.parametrize("width", [390, pytest.param(1440, marks=pytest.mark.nightly)])
def test_the_zoom_buttons_stay_while_a_page_is_scrolled(
    stack: LocalStack, browser: Browser, width: int
) -> None:
    with opened(browser, stack.base_url, width=width) as watched:
        page = watched.page
        _open_citation(page)
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


FIGURES = "**/api/documents/*/figures/*"


def _hold_figures(page: Page) -> Callable[[], None]:
    """Hold the requests for figures, and return a function that lets them and all later ones through."""
    routes: list[Route] = []
    pass_on: Callable[[Route], None] = routes.append

    def on_request(route: Route) -> None:
        pass_on(route)

    def release() -> None:
        nonlocal pass_on
        pass_on = Route.continue_
        for route in routes:
            route.continue_()

    page.route(FIGURES, on_request)
    return release


@pytest.mark.parametrize("width", [390, pytest.param(1440, marks=pytest.mark.nightly)])
def test_an_answer_reserves_space_for_its_figure(stack: LocalStack, browser: Browser, width: int) -> None:
    with opened(browser, stack.base_url, width=width) as watched:
        page = watched.page
        sources = page.locator(".sources")
        release = _hold_figures(page)
        ask(page, FACT)
        answered(page)
        expect(page.locator(".figure img.coming")).to_be_visible()
        coming = _top(sources)
        release()
        expect(page.locator(".figure img.sized")).to_be_visible()
        loaded = _top(sources)
        assert abs(loaded - coming) < 0.05 * width  # the place of any figure is 16:9 until its size is known
        page.click(".figure-button")  # the answer becomes narrower, and wider again
        page.keyboard.press("Escape")
        expect(sources).to_be_visible()
        assert _top(sources) == pytest.approx(loaded, abs=1)
        assert watched.axe() == []
        page.unroute_all(behavior="ignoreErrors")


@pytest.mark.parametrize("body", [_png(40, 30), b"damaged"])
def test_a_small_or_missing_figure_leaves_no_gap(stack: LocalStack, browser: Browser, body: bytes) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        page.route(FIGURES, lambda route: route.fulfill(body=body, content_type="image/png"))
        ask(page, FACT)
        answered(page)
        expect(page.locator(".figure img")).to_have_count(1)
        expect(page.locator(".figure img.coming")).to_have_count(0)
        box = page.locator(".figure img").bounding_box()
        assert box is not None
        assert box["height"] < 60
        page.unroute_all(behavior="ignoreErrors")


def test_a_page_reserves_the_exact_space_of_its_figures(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        release = _hold_figures(page)
        ask(page, FACT)
        answered(page)
        page.click(".markdown .place >> text=p. 3")
        page.wait_for_selector(".source .page-picture.there")
        page.click(".source summary")
        figure = page.locator(".elements img")
        figure.scroll_into_view_if_needed()
        caption = page.locator(".elements figcaption")
        before = _top(caption)
        assert figure.evaluate("image => image.naturalWidth") == 0
        release()
        expect(figure).to_have_js_property("naturalWidth", 827)
        assert _top(caption) == pytest.approx(before, abs=1)
        page.unroute_all(behavior="ignoreErrors")


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
