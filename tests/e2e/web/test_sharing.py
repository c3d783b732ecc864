"""Sharing an answer in the browser with a colleague who can read all, or not all, of its documents."""

import pytest
from playwright.sync_api import Browser, Page, expect

from local.run_all.stack import LocalStack
from tests.e2e.web.browser import opened

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
WIDTHS = [1440, 390]
ASKED = """async ([question, filename]) => {
  const listed = await (await fetch(`/api/documents?filename=${filename}`)).json();
  const doc_ids = listed.documents.filter((one) => one.filename === filename).map((one) => one.doc_id);
  const headers = {"content-type": "application/json"};
  const body = JSON.stringify({question, doc_ids, stream: false});
  return (await (await fetch("/api/chat", {method: "POST", headers, body})).json()).thread_id;
}"""
LINK = """async () => {
  const run = document.querySelector("[data-run]").dataset.run;
  return (await (await fetch(`/api/runs/${run}/shares`)).json()).shares[0].url;
}"""


def answer_from(page: Page, base_url: str, question: str, filename: str) -> None:
    """Ask about one document, and open the thread."""
    thread = page.evaluate(ASKED, [question, filename])
    page.goto(f"{base_url}/web?thread={thread}")
    page.wait_for_selector(".turn:last-child [data-status=completed]")


def share_with_ben(page: Page, filename: str) -> str:
    """Share the answer through the dialog, by keyboard, and return the link's path."""
    page.locator("[aria-label='Share']").focus()
    page.keyboard.press("Enter")
    dialog = page.locator("dialog[open]")
    expect(dialog).to_contain_text(filename)
    expect(dialog.get_by_role("button", name="Create link")).to_be_disabled()
    dialog.get_by_role("combobox", name="Add a person, group or department").fill("ben")
    page.keyboard.press("Enter")
    expect(dialog.locator(".readers")).to_contain_text("Ben Okafor")
    dialog.get_by_role("button", name="Create link").press("Enter")
    expect(dialog.get_by_role("heading", name="Active links")).to_be_visible()
    return str(page.evaluate(LINK))


@pytest.mark.parametrize("width", WIDTHS)
def test_a_colleague_who_can_read_everything_sees_the_answer(
    width: int, stack: LocalStack, browser: Browser
) -> None:
    with opened(browser, stack.base_url, width=width) as anna:
        answer_from(anna.page, stack.base_url, "What does the price list contain?", "price-list-2025.pdf")
        link = share_with_ben(anna.page, "price-list-2025.pdf")
        assert anna.axe() == []
        with opened(browser, stack.base_url, "ben", width=width, path=link) as ben:
            shared = ben.page.locator("article.turn")
            expect(shared).to_contain_text("Anna Bergqvist shared this answer with you.")
            expect(shared.locator(".markdown")).to_be_visible()
            assert ben.axe() == []
            anna.page.get_by_role("button", name="Revoke", exact=True).press("Enter")
            expect(anna.page.get_by_role("heading", name="Active links")).to_have_count(0)
            ben.page.reload()
            expect(ben.page.get_by_role("alert").first).to_be_visible()
            expect(ben.page.locator(".markdown")).to_have_count(0)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_colleague_without_a_document_sees_the_question_and_can_ask_it(
    width: int, stack: LocalStack, browser: Browser
) -> None:
    question = "What is the maximum operating pressure of the Heron 400?"
    with opened(browser, stack.base_url, width=width) as anna:
        answer_from(anna.page, stack.base_url, question, "heron-400-manual.pdf")
        link = share_with_ben(anna.page, "heron-400-manual.pdf")
    with opened(browser, stack.base_url, "ben", width=width, path=link) as ben:
        shared = ben.page.locator("article.turn")
        expect(shared).to_contain_text(question)
        expect(shared).to_contain_text("You can’t read all documents")
        expect(ben.page.locator(".markdown")).to_have_count(0)
        assert "heron-400-manual" not in ben.page.content()
        assert ben.axe() == []
        ben.page.get_by_role("button", name="Ask this question").press("Enter")
        answer = ben.page.locator(".turn .answer")
        expect(answer.locator(".markdown")).to_be_visible(timeout=30_000)
        expect(ben.page.locator(".turn .question-text")).to_have_text(question)
        expect(ben.page.locator("#question")).to_have_value("")
        expect(answer).not_to_contain_text("heron-400-manual")
