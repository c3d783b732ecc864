"""Hosts of the tests' own, with an Azurite."""

from tests.azurite_fixture import azurite
from tests.contract.host.conftest import new_host

__all__ = ["azurite", "new_host"]
