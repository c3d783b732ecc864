"""The option that rewrites the golden files."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--update`, which works only for `pytest tests/golden`."""
    parser.addoption("--update", action="store_true", help="write the event streams instead of comparing")
