"""The first visit of a user: where to start, and what to do if the documents contain no answer."""

import httpx
import pytest
from playwright.sync_api import Browser, expect

from local.run_all.stack import LocalStack
from samples.acl import ACCESS, ANNA, BEN, SAMPLE_USERS, readable_by
from tests.e2e.stack_client import client_of
from tests.e2e.web.browser import answered, ask, opened

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_the_sign_in_names_the_product(stack: LocalStack) -> None:
    for language, title in (("en-GB", "Sign in"), ("de-DE,de;q=0.9", "Anmelden"), ("", "Sign in")):
        page = httpx.get(f"{stack.base_url}/.auth/login/aad", headers={"Accept-Language": language}).text
        assert f"<title>{title} – Groundwork</title>" in page


@pytest.mark.parametrize(
    "user",
    [
        pytest.param(user, marks=() if user == BEN else pytest.mark.nightly, id=user.user_id)
        for user in SAMPLE_USERS
    ],
)
def test_an_empty_thread_offers_questions_about_readable_documents(
    stack: LocalStack, browser: Browser, user: object
) -> None:
    who = BEN if user == BEN else ANNA
    with client_of(stack, ANNA) as everything, client_of(stack, who) as own:
        titles = {
            str(one["title"]): str(one["filename"])
            for client in (everything, own)
            for one in client.get("/documents").json()["documents"]
            if one["filename"] in ACCESS
        }
    secret = {
        words
        for title, name in titles.items()
        if name not in readable_by(who)
        for words in (title.replace(":", "").casefold(), name)
    }
    with opened(browser, stack.base_url, who.user_id) as watched:
        page = watched.page
        expect(page.locator("#question")).to_be_focused()
        questions = page.locator(".suggestions button")
        expect(questions).to_have_count(4)
        suggestions = questions.all_inner_texts()
        text = "\n".join(suggestions).replace(":", "").casefold()
        assert not [words for words in secret if words in text]
        expect(page.locator(".welcome")).to_contain_text("You can ask about")
        expect(page.locator(".stand-in")).to_contain_text("not a language model")
        assert watched.axe() == []
        for question in suggestions:
            page.click(".sidebar .nav-link >> nth=0")
            questions.get_by_text(question, exact=True).click()
            expect(page.locator(".question-text")).to_have_text(question)
            answered(page)
            expect(page.locator(".gap")).to_have_count(0)  # the documents contain the answer


def test_a_phone_shows_the_greeting_first(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url, width=390) as watched:
        expect(watched.page.locator(".suggestions")).to_be_visible()
        assert watched.page.evaluate("document.querySelector('.scroller').scrollTop") == 0


def test_without_an_answer_the_closest_passages_and_next_steps_are_offered(
    stack: LocalStack, browser: Browser
) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        ask(page, "What is the name of the founder's dog?")
        answered(page)
        closest = page.locator(".closest button")
        expect(closest).to_have_count(3)
        closest.first.click()
        expect(page.locator(".panel-title")).to_be_visible()
        assert watched.axe() == []
        page.keyboard.press("Escape")
        expect(closest.first).to_be_focused()
        ask(page, "What is the price of the Falcon 900 helicopter?")
        answered(page)
        excerpts = page.locator(".closest .excerpt")
        expect(excerpts.locator("td", has_text="8,940")).to_be_visible()
        assert "|" not in "".join(excerpts.all_inner_texts())
        assert watched.axe() == []
        page.get_by_role("button", name="Take more time").click()
        expect(page.locator(".pager")).to_contain_text("2 of 2")
        answered(page)
        page.get_by_role("button", name="Add a document").click()
        expect(page.locator(".upload")).to_be_visible()
