"""Tests for tables in answers: words are never broken, and wide tables scroll within the answer."""

import pytest
from playwright.sync_api import Browser

from scripts.web_build import WEB

_ROW = "".join(
    f"<td>{text}</td>" for text in ("C-1001", "Nordbad", "renews automatically", "Notice", "monthly")
)
_CELLS = f"<tr>{_ROW}<td>whatever the contract says about it</td></tr>"
# Counts the lines of each cell that is a single word.
_LINES = """[...document.querySelectorAll("td")].filter((cell) => !/ /.test(cell.textContent)).map((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return new Set([...range.getClientRects()].map((rect) => rect.top)).size;
})"""


@pytest.mark.parametrize("width", [390, 720])
def test_words_in_cells_are_not_broken(browser: Browser, width: int) -> None:
    style = (WEB / "src" / "style" / "page.css").read_text(encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 700})
    page.set_content(
        f"<style>{style}</style><div class='markdown'><div class='scroll'><table>{_CELLS}</table></div></div>"
    )
    assert page.evaluate(_LINES) == [1, 1, 1, 1]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
