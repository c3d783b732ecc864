"""The search server of the contract tests."""

from tests.contract.search_server.conftest import search_server

__all__ = ["search_server"]
