"""Accessibility by axe's rules (WCAG 2.2 AA) in each state, theme and width, and use by keyboard only."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

import pytest
from playwright.sync_api import Browser, Page, expect

from local.run_all.stack import LocalStack
from samples.acl import ANNA
from shared.documents.ids import document_id
from tests.e2e.stack_client import client_of
from tests.e2e.test_documents import send, until_ended
from tests.e2e.web.browser import Watched, answered, ask, measure, opened

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
FACT = "What is the maximum operating pressure of the Heron 400?"
COMPARISON = "Compare the annual report 2023 and the annual report 2024: revenue and employees"
IS_WIDE = """[...document.querySelectorAll("html, .sidebar, .scroller, .page, .source-body, .dialog")].some(
  (one) => one.scrollWidth > one.clientWidth + 1)"""
Look: TypeAlias = tuple[Literal["light", "dark"], int]
# Colours hardly depend on the width, so some combinations are omitted.
FEW_LOOKS: tuple[Look, ...] = (("dark", 320), ("light", 1440))
LOOKS: tuple[Look, ...] = (*FEW_LOOKS, ("light", 320), ("dark", 768))


def _empty(page: Page) -> None:
    page.wait_for_selector(".welcome")


def _answer(page: Page) -> None:
    ask(page, COMPARISON)
    answered(page)
    page.click(".turn:last-child .progress summary")
    page.wait_for_selector(".todo")


def _source(page: Page) -> None:
    page.click(".markdown .chip >> nth=0")
    page.wait_for_selector(".page-picture .mark")


def _question_back(page: Page) -> None:
    page.keyboard.press("Escape")
    ask(page, "What was the revenue in the annual report?")
    page.wait_for_selector(".clarification")


def _help(page: Page) -> None:
    page.press(".scroller", "?")
    page.wait_for_selector("dialog")


def _scope(page: Page) -> None:
    page.keyboard.press("Escape")
    page.click(".composer .toggle >> nth=-1")
    page.wait_for_selector("dialog .checks label")


def _documents(page: Page) -> None:
    page.goto(page.url.partition("?")[0] + "?view=documents")
    page.wait_for_selector("table.documents")


def _document(page: Page) -> None:
    # Opened by the id of a sample, because the first row may be a document of another test that has failed.
    first = page.evaluate("document.querySelector('table.documents a').href")
    page.goto(re.sub("[0-9a-f]{24}", document_id("heron-400-installation-guide.pdf"), first))
    page.wait_for_selector(".metadata")


def _account(page: Page) -> None:
    page.goto(page.url.partition("?")[0] + "?view=account")
    page.wait_for_selector("#memory-title")


STATES: tuple[Callable[[Page], None], ...] = (
    _empty,
    _answer,
    _source,
    _question_back,
    _help,
    _scope,
    _documents,
    _document,
    _account,
)


@pytest.mark.parametrize(
    "looks", [pytest.param(FEW_LOOKS, id="few"), pytest.param(LOOKS, id="all", marks=pytest.mark.nightly)]
)
def test_every_state_is_accessible(
    stack: LocalStack, browser: Browser, report: Path, looks: tuple[Look, ...]
) -> None:
    faults: list[str] = []
    for scheme, width in looks:
        locale = "de-DE" if width == 768 else "en-GB"
        with opened(browser, stack.base_url, width=width, scheme=scheme, locale=locale) as watched:
            faults += _faults(watched, f"{scheme} {width}")
    measure(report, axe_violations=len(faults))
    assert faults == []


def _faults(watched: Watched, where: str) -> list[str]:
    faults: list[str] = []
    for state in STATES:
        state(watched.page)
        faults += [f"{where}{state.__name__}: {one}" for one in watched.axe()]
        wide = watched.page.evaluate(IS_WIDE)
        faults += [f"{where}{state.__name__}: scrolls sideways"] if wide else []
    return faults


def test_administrators_reports_are_accessible(stack: LocalStack, browser: Browser) -> None:
    with client_of(stack, ANNA) as anna:
        broken = send(anna, "omega-torn.pdf", b"%PDF-1.7 torn")["doc_id"]
        assert until_ended(anna, broken)["status"] == "failed"
    with opened(browser, stack.base_url, "admin", path="/?view=admin") as watched:
        page = watched.page
        reports = page.locator(".report")
        expect(reports.last.locator("summary")).to_have_text("Are all stores consistent?")
        for report in reports.all():
            if report.get_attribute("open") is None:
                report.locator("summary").click()
            expect(report.locator("> :nth-child(2)")).not_to_have_text(re.compile("Loading"))
        assert watched.axe() == []
        failed = page.locator(".report", has_text="Documents that could not be read").locator("tbody tr")
        expect(failed.filter(has_text="omega-torn.pdf").first).to_contain_text("Anna Bergqvist")
        people = page.locator(".report", has_text="People and their limits").locator("tbody tr")
        expect(people.filter(has_text="Anna Bergqvist")).to_have_count(1)
        page.get_by_label("Search people").fill("ok")
        expect(people).to_have_count(1)
        expect(people).to_contain_text("Ben Okafor")
    with client_of(stack, ANNA) as anna:
        anna.delete(f"/documents/{broken}")


def test_the_audit_trail_is_filtered_and_exported(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        ask(watched.page, FACT)
        answered(watched.page)
        expect(watched.page.locator(".sidebar >> text=Administration")).to_have_count(0)
    with opened(browser, stack.base_url, "admin") as watched:
        page = watched.page
        page.click(".sidebar >> text=Administration")
        page.click("summary >> text=Who read or changed what?")
        page.get_by_label("Who", exact=True).fill("anna")
        page.select_option(".report .upload-row select", "answer")
        rows = page.locator(".report tbody tr", has_text="anna")
        expect(rows.first).to_contain_text("answer")
        expect(rows.first).to_contain_text("heron-400-manual.pdf")
        with page.expect_download() as download:
            page.click("text=Export as CSV")
        lines = download.value.path().read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith("at,user_id,action")
        assert lines[1:]
        assert all('"anna","answer"' in line for line in lines[1:])


def test_a_question_is_asked_and_checked_by_keyboard_alone(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        expect(page.locator("#question")).to_be_focused()
        page.focus("#thread-search")
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("/")
        expect(page.locator("#question")).to_be_focused()
        page.keyboard.type(FACT)
        page.keyboard.press("Enter")
        answered(page)
        for _ in range(40):
            page.keyboard.press("Shift+Tab")
            if page.evaluate("document.activeElement.matches('.markdown .chip')"):
                break
        page.keyboard.press("Enter")
        page.wait_for_selector(".page-picture .mark")
        expect(page.locator(".source")).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.locator(".markdown .chip")).to_be_focused()
