"""A host whose model writes slowly enough to observe a run."""

from collections.abc import Iterator

import pytest

from local.run_all.stack import LocalStack
from tests.e2e.sub_agents.hosts import MODEL, configured

PACED = {
    "CHAT_MODEL": f"{MODEL}@tps=90",  # an answer takes some seconds
    "SUBAGENTS_ENABLED": "false",
    "MAX_TOTAL_LATENCY_MS": "120000",  # includes the time in which the host is dead
    "RATE_LIMIT_PER_MINUTE": "0",
    "MAX_CONCURRENT_RUNS": "0",
}


@pytest.fixture(scope="module")
def paced(stack: LocalStack) -> Iterator[LocalStack]:
    """Yield the same stack with a slower model."""
    with configured(stack, **PACED) as running:
        yield running
