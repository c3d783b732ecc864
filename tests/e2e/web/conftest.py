"""A browser for each file of web page tests, and the report that they fill."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.e2e.web.browser import REPORT, launched


@pytest.fixture(scope="module")  # while it runs, no other test of this process can run an event loop
def browser() -> Iterator[Browser]:
    with launched() as running:
        yield running


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Return the path of the report that `make web-check` names, otherwise a temporary one."""
    return Path(os.environ.get(REPORT) or tmp_path / "report.json")
