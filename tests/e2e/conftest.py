"""Fixtures of the tests that start real processes."""

from tests.e2e.stack_fixture import stack

__all__ = ["stack"]
