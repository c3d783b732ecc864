"""Size and speed of the page. Sizes are asserted, times are measured for the report."""

import statistics
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from local.run_all.stack import LocalStack
from scripts.web_build import WEB
from tests.e2e.web.browser import answered, ask, measure, only_measured, opened

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
MAX_JS_KB, MAX_CSS_KB = 80.0, 12.0
FACT = "What is the maximum operating pressure of the Heron 400?"
PAINT = """new Promise((tell) => new PerformanceObserver((list) =>
  list.getEntriesByName("first-contentful-paint").forEach((one) => tell(one.startTime))
).observe({type: "paint", buffered: true}))"""
CLICK = """async () => {
  const started = performance.now();
  document.querySelector(".turn:last-child .markdown .chip").click();
  while (!document.querySelector(".page-picture .mark")) await new Promise(requestAnimationFrame);
  const took = performance.now() - started;
  document.querySelector(".source-head button:last-child").click();
  return took;
}"""


def test_it_is_small(report: Path) -> None:
    """Measure what readers load for the chat view and for all views, with the larger of the two languages."""
    assets = WEB / "dist/assets"
    kb = {path.name.partition(".")[0]: path.stat().st_size / 1000 for path in assets.glob("*.js.gz")}
    views = kb["documents"] + kb["account"] + kb["admin"]
    chat_kb = kb["page"] + kb["chunk"] + max(kb["en"], kb["de"])
    js_kb = chat_kb + views
    assert sum(kb.values()) == pytest.approx(js_kb + min(kb["en"], kb["de"]))
    css_kb = sum(path.stat().st_size for path in assets.glob("*.css.gz")) / 1000
    measure(report, js_kb=round(js_kb, 1), js_chat_kb=round(chat_kb, 1), css_kb=round(css_kb, 1))
    assert js_kb <= MAX_JS_KB
    assert 0 < css_kb <= MAX_CSS_KB


@only_measured
def test_how_soon_it_is_there(stack: LocalStack, browser: Browser, report: Path) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        paints = []
        for _ in range(5):
            page.reload()
            page.wait_for_selector("#question")
            paints.append(_first_paint(page))
        ask(page, FACT)
        answered(page)
        page.evaluate(CLICK)
        clicks = [page.evaluate(CLICK) for _ in range(5)]
    measure(
        report,
        first_paint_ms=round(statistics.median(paints)),
        citation_click_ms=round(statistics.median(clicks)),
    )


def _first_paint(page: Page) -> float:
    """Return the time of the first painted words in milliseconds, which the browser may report later."""
    paint: float = page.evaluate(PAINT)
    return paint
