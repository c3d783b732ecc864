"""Fixtures for a browser per test file, and the report to which web page tests add measurements."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.e2e.web.browser import REPORT, launched


@pytest.fixture(scope="module")  # while the browser runs, other tests of this process can't run an event loop
def browser() -> Iterator[Browser]:
    with launched() as running:
        yield running


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Return the path of the report that `make web-check` requests, or else a temporary path."""
    return Path(os.environ.get(REPORT) or tmp_path / "report.json")
