"""Client processes that send searches with the real SDK and time the responses."""

import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass

from azure.core.credentials import AzureKeyCredential
from azure.search.documents import SearchClient
from azure.search.documents.models import VectorizedQuery

from benchmarks.search.corpus import INDEX, Question, acl_filter, questions

KEY = "benchmark"
TOP = 10
NEIGHBOURS = 50
WARM_UP = 5
QUESTIONS = 400
START_DELAY_S = 0.5
SELECT = ["block_id", "content", "page_number"]


@dataclass(frozen=True)
class Scenario:
    """A kind of search to measure. `share` is the percentage of blocks that the user may read, or None for
    searches without a filter. If `cold` is set, every request has a different filter.
    """

    mode: str
    share: float | None
    clients: int
    cold: bool = False


@dataclass(frozen=True)
class Measured:
    latencies_ms: list[float]
    throughput_per_s: float


class Clients:
    """The client processes of one server. They are reused, because starting them takes longer than a
    scenario.
    """

    def __init__(self, endpoint: str, most: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pools = {count: context.Pool(count, _connect, (endpoint,)) for count in (1, most)}

    def close(self) -> None:
        for pool in self._pools.values():
            pool.terminate()
            pool.join()

    def measure(self, scenario: Scenario, seconds: float) -> Measured:
        """Run a scenario for `seconds` with all its clients, which start at the same moment. Return the
        latencies and the throughput.
        """
        pool = self._pools[scenario.clients]
        numbers = range(scenario.clients)
        pool.starmap(_warm_up, [(scenario, number) for number in numbers], chunksize=1)
        start = time.monotonic() + START_DELAY_S
        tasks = [(scenario, number, start, start + seconds) for number in numbers]
        results = pool.starmap(_ask_for, tasks, chunksize=1)
        latencies = [latency for result in results for latency in result]
        return Measured(latencies, len(latencies) / seconds)


# Global state of a client process.
_clients: list[SearchClient] = []
_questions: list[Question] = []


def _connect(endpoint: str) -> None:
    _clients.append(SearchClient(endpoint, INDEX, AzureKeyCredential(KEY)))
    _questions.extend(questions(QUESTIONS))


def _warm_up(scenario: Scenario, number: int) -> None:
    for turn, question in enumerate(_questions[:WARM_UP]):
        _ask(_clients[0], scenario, question, f"warm-{number}-{turn}" if scenario.cold else "")


def _ask_for(scenario: Scenario, number: int, start: float, end: float) -> list[float]:
    offset = number * QUESTIONS // scenario.clients
    latencies: list[float] = []
    # All clients start at the same time. Until then, this process is busy and can't be given a second task.
    time.sleep(max(0.0, start - time.monotonic()))
    while (started := time.monotonic()) < end:
        turn = len(latencies)
        extra = f"nobody-{number}-{turn}" if scenario.cold else ""
        _ask(_clients[0], scenario, _questions[(offset + turn) % QUESTIONS], extra)
        latencies.append(1000 * (time.monotonic() - started))
    return latencies


def _ask(client: SearchClient, scenario: Scenario, question: Question, extra: str) -> Sequence[object]:
    vectors = None
    if scenario.mode != "text":
        query = VectorizedQuery(
            vector=question.vector, k_nearest_neighbors=NEIGHBOURS, fields="content_vector"
        )
        vectors = [query]
    return list(
        client.search(
            question.text if scenario.mode != "vector" else None,
            vector_queries=vectors,  # type: ignore[arg-type]
            filter=acl_filter(scenario.share, extra),
            select=SELECT,
            top=TOP,
        )
    )
