"""A proof step that takes screenshots of the web page, if a browser is available."""

import os
import shutil
from pathlib import Path
from typing import Any

from evals.azure_proof.evidence import Outcome, check
from evals.azure_proof.target import World

QUESTION = "What is the maximum operating pressure of the Heron 400?"
_WIDTH, _HEIGHT = 1280, 860
_TIMEOUT_MS = 120_000


def take_pictures(world: World) -> Outcome:
    """Take screenshots of an answer, of one of its sources and of the list of documents."""
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return Outcome(notes=("Skipped: Playwright is not installed (requirements/dev.txt).",))
    if executable is None:
        return Outcome(notes=("Skipped: Chromium is not installed; CHROMIUM names one.",))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        try:
            files = _pictures(browser, world)
        finally:
            browser.close()
    return Outcome(
        checks=(check("the page shows an answer and its source", ", ".join(files), passed=len(files) == 3),),
        files=tuple(files),
    )


def _pictures(browser: Any, world: World) -> list[str]:
    # Send the token in a header with every request. In a user's browser, the platform's cookie takes its
    # place.
    headers = {"Authorization": f"Bearer {world.target.token()}"}
    context = browser.new_context(
        locale="en-GB", viewport={"width": _WIDTH, "height": _HEIGHT}, extra_http_headers=headers
    )
    context.set_default_timeout(_TIMEOUT_MS)
    page = context.new_page()
    page.goto(f"{world.target.url}/web")
    page.fill("#question", QUESTION)
    page.press("#question", "Enter")
    page.wait_for_selector(".turn:last-child [data-status=completed]")
    names = [_save(page, world.out, "answer.png")]
    page.click(".turn:last-child .markdown .chip >> nth=0")
    page.wait_for_selector(".page-picture .mark")
    # Wait until the page has scrolled to the highlighted quotation.
    page.wait_for_timeout(1000)
    names.append(_save(page, world.out, "source.png"))
    page.goto(f"{world.target.url}/web?view=documents")
    page.wait_for_selector("text=heron-400-manual.pdf")
    names.append(_save(page, world.out, "documents.png"))
    return names


def _save(page: Any, out: Path, name: str) -> str:
    page.screenshot(path=str(out / name))
    return name
