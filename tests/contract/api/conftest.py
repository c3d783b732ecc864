"""The API is tested through the host, with the samples ingested."""

from tests.e2e.stack_fixture import stack

__all__ = ["stack"]
