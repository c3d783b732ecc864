"""Every tool of the registry x every person: models get only what the person may read."""

import pytest

from shared.tools.registry import TOOLS
from shared.wiring import Services
from tests.e2e.access.corpus import AccessCorpus
from tests.e2e.access.people import PAPERS, PEOPLE
from tests.e2e.access.tools import probe_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), pytest.mark.attack("access matrix")]


def test_every_open_paper_has_blocks_to_reach_for(world: AccessCorpus) -> None:
    assert set(world.block_ids) == set(PAPERS) - {"nobody"}


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_tool_gives_what_the_oracle_says(world: AccessCorpus, services: Services, tool: str) -> None:
    for name in PEOPLE:
        await probe_of(tool)(world, services, name)
