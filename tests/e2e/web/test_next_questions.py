"""Next questions below an answer, by keyboard, on desktop and phone, in both languages."""

import pytest
from playwright.sync_api import Browser, expect

from local.run_all.stack import LocalStack
from tests.e2e.web.browser import answered, ask, opened

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
FACT = "What is the maximum operating pressure of the Heron 400?"
GERMAN_FACT = "Wann muss die Membran der Kestrel 120 ersetzt werden?"


@pytest.mark.parametrize("width", [1440, pytest.param(390, marks=pytest.mark.nightly)])
def test_a_next_question_is_put_into_the_composer_and_not_sent(
    width: int, stack: LocalStack, browser: Browser
) -> None:
    with opened(browser, stack.base_url, width=width) as watched:
        page = watched.page
        ask(page, FACT)
        answered(page)
        suggested = page.get_by_role("list", name="Ask next").get_by_role("button")
        expect(suggested.first).to_be_visible()
        texts = suggested.all_inner_texts()
        assert 1 <= len(texts) <= 2
        assert watched.axe() == []
        assert all(box["height"] >= 44 for one in suggested.all() if (box := one.bounding_box()))

        composer = page.locator("#question")
        suggested.first.focus()
        page.keyboard.press("Enter")
        expect(composer).to_be_focused()
        expect(composer).to_have_value(texts[0])
        suggested.last.press("Enter")
        expect(composer).to_have_value(texts[-1])  # a suggestion replaces the previous suggestion
        page.fill("#question", "In short:")
        suggested.first.press("Enter")
        # A suggestion is appended to text that the user typed.
        expect(composer).to_have_value(f"In short:\n{texts[0]}")
        expect(page.locator(".turn")).to_have_count(1)

        page.fill("#question", "")
        page.reload()
        expect(suggested).to_have_text(texts)
        suggested.first.press("Enter")
        page.keyboard.press("Enter")
        expect(page.locator(".turn")).to_have_count(2)
        answered(page)
        expect(page.get_by_role("list", name="Ask next")).to_have_count(1)  # only below the newest answer


def test_below_a_german_answer_they_are_german(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url, locale="de-DE") as watched:
        page = watched.page
        ask(page, GERMAN_FACT)
        answered(page)
        suggested = page.get_by_role("list", name="Als Nächstes fragen").get_by_role("button")
        expect(suggested.first).to_contain_text("Was steht in")


def test_below_a_gap_there_are_none(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        ask(page, "What is the capital of Mongolia?")
        answered(page)
        expect(page.locator(".gap")).to_be_visible()
        expect(page.locator(".next-questions")).to_have_count(0)
