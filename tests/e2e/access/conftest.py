"""Fixtures for a stack that all access tests share, with streams that end early so that tests can read them
completely.
"""

from collections.abc import AsyncIterator, Iterator

import pytest

from local.run_all.stack import LocalStack
from shared.ingestion.parser_process import parsers
from shared.wiring import Services
from tests.e2e.access.corpus import STREAM_SECONDS, AccessCorpus, fill
from tests.e2e.stack_fixture import PATIENT, environment_without_model, settings_for
from tests.e2e.stack_services import services_of


@pytest.fixture(name="world", scope="package")  # an idle stack takes 4 % of a core
def make_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccessCorpus]:
    """Yield the stack with all papers, and with data created by every person."""
    folder = tmp_path_factory.mktemp("access")
    overrides = {**PATIENT, "STREAM_SECONDS": str(STREAM_SECONDS), "DEFAULT_ACCESS": "*"}
    with LocalStack(settings_for(folder), overrides, environment_without_model()) as stack:
        world = AccessCorpus(stack)
        try:
            fill(world, folder)
            yield world
        finally:
            world.close()


@pytest.fixture
async def services(world: AccessCorpus) -> AsyncIterator[Services]:
    """Yield the app's own services over the stack's servers."""
    async with services_of(world.stack) as services:
        yield services
        parsers(services.settings.host.instance_memory_mb).close()
