"""Signed-in pages in the machine's Chromium. A test fails if its page reports any fault.

The Content-Security-Policy is enforced. `faults` collects errors, violations of the policy, and requests to
other machines.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Dialog,
    Page,
    Playwright,
    Request,
    expect,
    sync_playwright,
)

from scripts.web_build import WEB, build
from tests.e2e.stack_client import HANG_GUARD_S, eventually
from tests.e2e.teams.browser import find_chromium

REPORT = "WEB_CHECK_OUT"  # contains the path to which measurements are written
only_measured = pytest.mark.skipif(REPORT not in os.environ, reason="asserts nothing: `make web-check`")
PATIENCE_MS = HANG_GUARD_S * 1000
expect.set_options(timeout=PATIENCE_MS)
AXE = WEB / "node_modules" / "axe-core" / "axe.min.js"
WATCH_POLICY = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
"""
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN_AXE = """async (rules) => (await axe.run(document, {runOnly: rules})).violations.map(
  (one) => one.id + ": " + one.nodes.map((node) => node.html.slice(0, 200)).join(" | "))"""
# The browser itself logs failed requests, which include missing sessions and errors that a test provokes.
EXPECTED = re.compile(
    r"status of (400|401|404|409|412|422|429|503)|net::ERR_(ABORTED|CONNECTION|EMPTY|INCOMPLETE)"
)


@dataclass
class Watched:
    """A page with the faults that it reported."""

    page: Page
    faults: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Raise AssertionError if there are any faults, listing them all."""
        violations = self.page.evaluate("window.violations ?? []")
        assert self.faults + [f"policy: {one}" for one in violations] == []

    def axe(self) -> list[str]:
        """Return the violations of WCAG 2.2 AA that axe finds on the page."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        violations: list[str] = self.page.evaluate(RUN_AXE, RULES)
        return violations


def require_browser() -> str:
    """Return the path of Chromium. Without it, skip the test, or fail in CI, where it is always installed."""
    path = find_chromium()
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is missing")
        pytest.skip("Chromium is not installed")
    return path


@contextmanager
def launched() -> Iterator[Browser]:
    """Build the web page, and yield a browser."""
    executable = require_browser()
    build()
    with sync_playwright() as playwright:
        yield _launch(playwright, executable)


def _launch(playwright: Playwright, executable: str) -> Browser:
    return playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])


def drop(page: Page, *paths: Path) -> None:
    """Drag files or folders over the page until it shows that they may be dropped, and drop them.

    Chromium ignores a drag over a page that it hasn't painted yet.
    """
    devtools = page.context.new_cdp_session(page)
    files = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}

    def drag(kind: str) -> None:
        devtools.send("Input.dispatchDragEvent", {"type": kind, "x": 200, "y": 300, "data": files})

    def is_over() -> bool:
        drag("dragOver")
        return page.locator(".drop-target").is_visible()

    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    drag("dragEnter")
    eventually(is_over, "a page that takes files")
    drag("drop")


@contextmanager
def opened(
    browser: Browser,
    url: str,
    user: str = "anna",
    *,
    width: int = 1440,
    scheme: Literal["dark", "light"] = "light",
    locale: str = "en-GB",
    path: str = "/",
) -> Iterator[Watched]:
    """Yield the page, signed in as a sample user. On exit, the test fails if the page reported faults."""
    context = browser.new_context(
        locale=locale, color_scheme=scheme, viewport={"width": width, "height": 900}, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(WATCH_POLICY)
    watched = Watched(context.new_page())
    _listen(watched)
    try:
        watched.page.goto(url + path)
        watched.page.click(f"button[value={user}]")
        watched.page.wait_for_selector("main")
        yield watched
    except Exception as failed:
        failed.add_note(f"The page at {watched.page.url} showed:\n{watched.page.inner_text('body')}")
        failed.add_note(f"Its faults: {watched.faults}")
        raise
    watched.check()
    context.close()


def _listen(watched: Watched) -> None:
    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error" and not EXPECTED.search(message.text):
            watched.faults.append(f"console: {message.text}")

    def on_request(request: Request) -> None:
        if urlsplit(request.url).hostname not in ("127.0.0.1", None):
            watched.faults.append(f"left loopback: {request.url}")

    def on_dialog(dialog: Dialog) -> None:
        watched.faults.append("dialog")
        dialog.dismiss()

    watched.page.on("console", on_console)
    watched.page.on("request", on_request)
    watched.page.on("pageerror", lambda error: watched.faults.append(f"error: {error}"))
    watched.page.on("dialog", on_dialog)


def ask(page: Page, question: str) -> None:
    """Send a question on the page."""
    page.fill("#question", question)
    page.press("#question", "Enter")


def answered(page: Page, status: str = "completed") -> None:
    """Wait until the last answer has this status."""
    page.wait_for_selector(f".turn:last-child [data-status={status}]")


def answer_text(page: Page) -> str:
    """Return the displayed text of the last answer."""
    return page.inner_text(".turn:last-child .markdown")


def measure(path: Path, **measured: Any) -> None:
    """Add numbers to the report of `make web-check`."""
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**before, **measured}, indent=2) + "\n", encoding="utf-8")
