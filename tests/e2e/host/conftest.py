"""Fixtures for separate hosts with an Azurite."""

from tests.contract.host.conftest import new_host

__all__ = ["new_host"]
