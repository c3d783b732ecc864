"""Clarifications, and questions that are stopped, queued or repeated, in the web page."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from local.run_all.stack import LocalStack
from tests.e2e.sub_agents.hosts import MODEL, configured
from tests.e2e.web.browser import answer_text, answered, ask, opened

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
FACT = "What is the maximum operating pressure of the Heron 400?"
BETWEEN = "What was the revenue in the annual report?"
SUMMARY = "Summarise the Heron 400 installation guide."
PACED = {
    "CHAT_MODEL": f"{MODEL}@ttft=500,tps=25,only=answer",  # an answer takes some seconds
    "SUBAGENTS_ENABLED": "false",
    "MAX_TOTAL_LATENCY_MS": "180000",
}


def test_the_composer_answers_a_clarifying_question(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        ask(page, BETWEEN)
        expect(page.locator(".clarification")).to_be_focused()
        # The search for threads, and the composer.
        expect(page.locator("input:visible, textarea:visible")).to_have_count(2)
        page.fill("#question", "2")
        page.press("#question", "Enter")
        answered(page)
        expect(page.locator(".turn")).to_have_count(1)
        assert "53.7" in answer_text(page)
        expect(page.locator(".clarified")).to_contain_text("2024")
        page.reload()
        expect(page.locator(".clarified")).to_contain_text("2024")


def test_own_words_answer_and_stay_visible(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url, locale="de-DE") as watched:
        page = watched.page
        ask(page, BETWEEN)
        expect(page.locator(".clarification")).to_be_focused()
        # Text typed while the card has the focus goes to the composer.
        page.keyboard.type("the one that Mrs Dunn signed")
        expect(page.locator("#question")).to_have_value("the one that Mrs Dunn signed")
        page.keyboard.press("Enter")
        answered(page)
        expect(page.locator(".clarified")).to_contain_text("Ihre Antwort: the one that Mrs Dunn signed")
        page.reload()
        expect(page.locator(".clarified")).to_contain_text("the one that Mrs Dunn signed")


def test_the_focus_returns_to_the_composer_after_a_choice(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        ask(page, BETWEEN)
        page.click(".option >> nth=0")
        answered(page)
        expect(page.locator("#question")).to_be_focused()
        assert watched.axe() == []


def test_another_question_takes_the_place_of_a_clarifying_one(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        ask(page, BETWEEN)
        page.click("text=Ask something else instead")
        answered(page, "cancelled")
        ask(page, FACT)
        answered(page)
        expect(page.locator(".turn")).to_have_count(2)
        assert "6.5 bar" in answer_text(page)


def test_how_it_was_answered_is_whole_after_a_reload(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        ask(page, FACT)
        answered(page)
        page.click(".progress summary")
        steps = page.locator(".trail li")
        expect(steps.first).to_be_visible()
        before = steps.all_inner_texts()
        assert any("Searching the documents" in step for step in before)
        page.reload()
        page.click(".progress summary")
        expect(steps).to_have_text(before)
        plan = page.inner_text(".plan")
        assert not re.search(r"Nothing suggests|Tokens|Cost|\$|Turns", plan)


def test_the_latest_question_is_edited_like_every_other(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        ask(page, FACT)
        answered(page)
        before = page.url
        page.click(".turn:last-child .question [aria-label='Edit and ask again']")
        edited = "What does the Heron 400 weigh without liquid?"
        ask(page, edited)
        expect(page.locator(".question-text")).to_have_text([edited])
        answered(page)
        assert page.url != before
        page.go_back()
        expect(page.locator(".question-text")).to_have_text([FACT])


def test_an_older_question_gets_versions_to_page_through(stack: LocalStack, browser: Browser) -> None:
    weight = "What does the Heron 400 weigh without liquid?"
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        questions = page.locator(".question-text")
        for question in (FACT, weight):
            ask(page, question)
            answered(page)
        page.click(".turn:first-child [aria-label='Ask again']")
        expect(questions).to_have_text([FACT])  # later questions belong to the earlier version
        answered(page)
        expect(page.locator(".pager")).to_contain_text("2 of 2")
        page.reload()
        expect(questions).to_have_text([FACT])
        page.click("[aria-label='Previous version']")
        expect(questions).to_have_text([FACT, weight])
        expect(page.locator(".pager")).to_contain_text("1 of 2")
        page.click("[aria-label='Next version']")
        ask(page, weight)
        answered(page)
        expect(questions).to_have_text([FACT, weight])
        page.click("[aria-label='Previous version']")
        # This repeats a question of the earlier version.
        page.click(".turn:last-child [aria-label='Ask again']")
        expect(page.locator(".turn:last-child .pager")).to_contain_text("2 of 2")
        assert watched.axe() == []


def test_a_long_answer_is_read_from_its_beginning(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        page.set_viewport_size({"width": 1280, "height": 480})
        ask(page, SUMMARY)
        answered(page)
        question = page.locator(".question-text")
        expect(question).to_be_in_viewport(ratio=1)
        page.get_by_role("button", name="To the bottom").click()
        expect(page.locator(".turn .actions")).to_be_in_viewport()
        page.reload()
        answered(page)
        expect(question).to_be_in_viewport(ratio=1)


def test_an_agent_is_chosen_beside_the_question(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        page.click(".composer [title='Who answers']")
        menu = page.locator(".composer .menu-list")
        expect(menu).to_contain_text("librarian")
        expect(menu.locator("small").nth(1)).to_have_text(re.compile(r"\w+ \w+"))
        assert watched.axe() == []
        menu.locator("button", has_text="librarian").click()
        expect(page.locator("#question")).to_be_focused()
        with page.expect_request("**/api/chat") as request_info:
            ask(page, FACT)
        assert (request_info.value.post_data_json or {})["agent"] == "librarian"
        answered(page)


@pytest.fixture(scope="module")
def paced(stack: LocalStack) -> Iterator[LocalStack]:
    with configured(stack, **PACED) as running:
        yield running


def _some_text(page: Page) -> str:
    """Return the text of the answer once some of it is displayed."""
    expect(page.locator(".turn:last-child .markdown")).to_contain_text(re.compile(r"(\w+\W+){20}"))
    return answer_text(page)


def test_what_was_written_stays_when_an_answer_is_stopped(paced: LocalStack, browser: Browser) -> None:
    with opened(browser, paced.base_url) as watched:
        page = watched.page
        ask(page, SUMMARY)
        partial_answer = _some_text(page)
        page.click(".composer [aria-label=Stop]")
        answered(page, "cancelled")
        stopped = answer_text(page)
        assert stopped.startswith(partial_answer[:100])
        page.reload()
        expect(page.locator(".stopped .markdown")).to_have_text(re.compile(".{100}", re.DOTALL))
        assert answer_text(page) == stopped
        expect(page.locator(".answer")).to_contain_text("You stopped this answer.")
        page.get_by_role("button", name="Ask again", exact=True).click()
        answered(page)
        expect(page.locator(".turn")).to_have_count(1)
        expect(page.locator(".stopped")).to_have_count(0)
        page.reload()
        expect(page.locator(".pager")).to_contain_text("2 of 2")
        page.click("[aria-label='Previous version']")
        expect(page.locator(".stopped .markdown")).to_be_visible()
        assert answer_text(page) == stopped
        assert watched.axe() == []
        ask(page, FACT)  # the versions of an older question stay
        expect(page.locator(".turn")).to_have_count(2)
        expect(page.locator(".turn:first-child .pager")).to_contain_text("2 of 2")


def test_a_second_question_waits_for_the_first_answer(paced: LocalStack, browser: Browser) -> None:
    with opened(browser, paced.base_url) as watched:
        page = watched.page
        ask(page, SUMMARY)
        _some_text(page)
        expect(page.locator(".composer .send")).to_have_count(1)  # the button to stop
        ask(page, FACT)
        expect(page.locator(".composer .scoped")).to_contain_text(FACT)
        expect(page.locator(".turn")).to_have_count(1)
        page.reload()
        expect(page.locator(".composer .scoped")).to_contain_text(FACT)
        expect(page.locator(".turn:nth-child(2) .question-text")).to_have_text(FACT)
        answered(page)
        expect(page.locator(".turn:first-child .answer")).to_have_attribute("data-status", "completed")
        expect(page.locator(".composer .scoped")).to_have_count(0)
