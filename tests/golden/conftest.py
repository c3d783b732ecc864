"""The option that rewrites the golden files."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update`, which works for `pytest tests/golden` alone."""
    parser.addoption("--update", action="store_true", help="write the event streams instead of comparing")
