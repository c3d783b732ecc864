"""One stack for all tests of access; short streams, so that a test can read one to its end."""

from collections.abc import Iterator

import pytest

from local.run_all.stack import LocalStack
from local.run_all.stack_settings import FREE_PORTS, StackSettings
from tests.e2e.access.world import STREAM_SECONDS, World, fill
from tests.e2e.stack_fixture import environment_without_model


@pytest.fixture(name="world", scope="session")
def make_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The stack with the papers, and what everybody made of them."""
    folder = tmp_path_factory.mktemp("access")
    overrides = {"STREAM_SECONDS": str(STREAM_SECONDS), "DEFAULT_ACCESS": "*"}
    settings = StackSettings(FREE_PORTS, folder)
    with LocalStack(settings, overrides, environment=environment_without_model()) as stack:
        world = World(stack)
        try:
            fill(world, folder)
            yield world
        finally:
            world.close()
