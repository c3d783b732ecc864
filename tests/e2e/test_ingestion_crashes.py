"""kill -9 of the host at random moments while documents change: nothing is lost or left over."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from local.run_all.stack import LocalStack
from shared.ingestion.audit import audit
from tests.e2e.document_lives import Life, Lives, make_lives
from tests.e2e.stack_fixture import environment_without_model, settings_for
from tests.e2e.stack_services import everything, services_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SEED = 20251121
AT_ONCE = 5
# Time until a host is killed; the shortest times end before the host has listed any document.
LONGEST_LIFE_S = 1.5


async def lead(stack: LocalStack, lives: Sequence[Life], kills: int) -> dict[str, object]:
    """Perform all documents' changes with this many kills, and return everything stored at the end."""
    async with services_of(stack) as services:
        run = Lives(lives)
        watching = asyncio.create_task(run.watch(services))
        killing = asyncio.create_task(kill_again_and_again(stack, run, kills))
        try:
            await run.live(services, AT_ONCE)
            struck = await killing
        finally:
            killing.cancel()
            watching.cancel()
            (seen,) = await asyncio.gather(watching, return_exceptions=True)
        if isinstance(seen, AssertionError):
            raise seen
        assert struck == kills, f"only {struck} kills came while documents were in work"
        report = await audit(services)
        assert report.agrees, report.differences
        return await everything(services)


async def kill_again_and_again(stack: LocalStack, run: Lives, kills: int) -> int:
    """Return how many kills occurred during ingestions. The host runs again at the end."""
    chance = random.Random(SEED)
    for struck in range(kills):
        await asyncio.sleep(chance.uniform(0.0, LONGEST_LIFE_S))
        if not run.working:
            return struck
        await asyncio.to_thread(stack.kill_host)
        await asyncio.to_thread(stack.start_host)
    return kills


def fresh_stack(folder: Path) -> LocalStack:
    return LocalStack(settings_for(folder), environment=environment_without_model())


# Six documents are enough for every kind of life, including one with a picture.
@pytest.mark.parametrize(("documents", "struck"), [(6, 2), pytest.param(20, 3, marks=pytest.mark.nightly)])
async def test_kills_leave_the_same_as_none(tmp_path: Path, documents: int, struck: int) -> None:
    lives = make_lives(documents, SEED)
    remains = {}
    for kills in (struck, 0):
        with fresh_stack(tmp_path / f"with-{kills}") as stack:
            remains[kills] = await lead(stack, lives, kills)
    for part, undisturbed in remains[0].items():
        assert remains[struck][part] == undisturbed, part
