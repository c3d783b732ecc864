"""Tests for the requests, storage calls and memory of a run, which must not grow with the library."""

import tracemalloc

from shared.sharepoint.models import SyncStep
from shared.sharepoint.synchronisation import advance
from tests.fakes.dying import Death
from tests.fakes.sharepoint_server import user
from tests.unit.sharepoint.tenant import ANNA, Tenant, tenant

NEVER = 10**9
MAX_STORAGE_CALLS = 6.5  # of a new file: 3 for its row, 3 for its sidecar and content, some for the run
MAX_REQUESTS = 2.2  # of a new file: its address, its content, and a share of the page and its permissions
MAX_GROWTH_BYTES = 2_000_000  # between 100 and 500 files; 20,000 would add 100 MB if all were kept


async def test_a_new_file_costs_two_requests_and_six_storage_calls() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        for number in range(100):
            t.server.file(drive, f"{number}.md", permissions=[user(ANNA)])
        calls = Death(NEVER)
        await t.run(calls.mortal(t.services, {"blobs": (), "libraries": ()}))
        assert len(t.names()) == 100
        assert len(t.server.requests) <= MAX_REQUESTS * 100
        assert len(calls.calls) <= MAX_STORAGE_CALLS * 100


async def test_memory_does_not_grow_with_the_library() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        await t.run()  # loads modules and creates the library's row
        few = await _transient_bytes(t, [t.server.file(drive, f"{n}.md") for n in range(100)])
        many = await _transient_bytes(t, [t.server.file(drive, f"many{n}.md") for n in range(500)])
        assert len(t.names()) == 600
        assert many - few < MAX_GROWTH_BYTES


async def _transient_bytes(t: Tenant, files: list[str]) -> int:
    """Perform a run and return the largest amount of memory that a step used and freed again."""
    assert files
    (library,) = await t.store.libraries()
    largest, is_done = 0, False
    t.runs += 1
    tracemalloc.start()
    try:
        while not is_done:
            tracemalloc.reset_peak()
            step = SyncStep(library_id=library.library_id, run=f"measured{t.runs}")
            is_done = (await advance(step, t.services, t.now)).following == "done"
            current, peak = tracemalloc.get_traced_memory()
            largest = max(largest, peak - current)
    finally:
        tracemalloc.stop()
    return largest
