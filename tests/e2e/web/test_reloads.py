"""Reloads at random events of runs, and one kill of the host: the page finally shows the complete answer."""

import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from local.run_all.api_client import LAST_EVENTS, ApiClient
from local.run_all.stack import LocalStack
from samples.acl import ANNA
from tests.e2e.sub_agents.hosts import MODEL, configured
from tests.e2e.web.browser import answer_text, answered, ask, measure, opened

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

SEED = 20261122
RELOADS = int(os.environ.get("RELOADS", "3"))  # `make web-check` reloads thirty times
PER_RUN = 3
KILLED_RUN = 0  # the host is killed in the first run
PACED = {
    "CHAT_MODEL": f"{MODEL}@ttft=500,tps=25,only=answer",  # an answer takes some seconds
    "SUBAGENTS_ENABLED": "false",
    "MAX_TOTAL_LATENCY_MS": "180000",  # includes the time during which the host is down
    "RATE_LIMIT_PER_MINUTE": "0",
}
QUESTION = "Summarise the Heron 400 installation guide."
MOST_EVENTS = 30  # fewer than the answer to QUESTION has
SOURCE = re.compile(r"\(Source: [^)]*\)")  # the page shows only the number of a source
# Stores the last text that the page showed while the run was active.
REMEMBER = """new MutationObserver(() => {
  const shown = document.querySelector(".turn:last-child [data-status=running] .markdown");
  if (shown) window.lastLive = shown.innerText;
}).observe(document, {subtree: true, childList: true, characterData: true});"""


@pytest.fixture
def paced(stack: LocalStack) -> Iterator[LocalStack]:
    with configured(stack, **PACED) as running:
        yield running


def test_a_page_that_is_reloaded_ends_with_the_answer(
    paced: LocalStack, browser: Browser, report: Path
) -> None:
    chance = random.Random(SEED)
    wrong: list[str] = []
    live = 0
    with opened(browser, paced.base_url) as watched:
        page = watched.page
        page.add_init_script(REMEMBER)
        for number in range(RELOADS // PER_RUN):
            page.goto(paced.base_url)
            ask(page, QUESTION)
            run_id = _run_of(page)
            for position, event in enumerate(sorted(chance.sample(range(1, MOST_EVENTS), PER_RUN))):
                live += _wait_for(paced, run_id, event)
                page.reload()
                page.wait_for_selector(f"[data-run='{run_id}']")
                if position == 1 and number == KILLED_RUN:
                    paced.kill_host()
                    paced.start_host()
            wrong += _faults(paced, page, run_id)
    measure(report, reload_rounds=RELOADS, reload_wrong=len(wrong))
    assert wrong == []
    # At least the first reload of each run.
    assert live >= RELOADS // PER_RUN, "reloads came when the run had ended"


def _run_of(page: Page) -> str:
    answer = page.locator(".turn:last-child .answer")
    expect(answer).to_have_attribute("data-run", re.compile("."))
    return answer.get_attribute("data-run") or ""


def _wait_for(stack: LocalStack, run_id: str, number: int) -> bool:
    """Wait until the run has sent this many events. Return False if it has ended."""
    for event in ApiClient(stack.base_url, stack.token(ANNA)).resume(run_id, 0):
        if event.name in LAST_EVENTS:
            return False
        if event.number >= number:
            break
    return True


def _faults(stack: LocalStack, page: Page, run_id: str) -> list[str]:
    """Return displayed text that differs from the answer, live and after reopening."""
    answered(page)
    answer = ApiClient(stack.base_url, stack.token(ANNA)).get(f"/api/runs/{run_id}")["answer"]
    expected = _letters(SOURCE.sub("", answer["text"]))
    live = _letters(page.evaluate("window.lastLive ?? ''"))
    displayed_text = _letters(answer_text(page))
    page.reload()
    answered(page)
    again = _letters(answer_text(page))
    faults = {
        "live": not expected.startswith(live),
        "end": displayed_text != expected,
        "again": again != expected,
    }
    return [f"{run_id} {name}" for name, is_wrong in faults.items() if is_wrong]


def _letters(text: str) -> str:
    """Return only letters and digits, because Markdown and its rendering differ in everything else."""
    return re.sub(r"[\W_]+", "", text)
