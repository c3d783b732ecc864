"""`python -m benchmarks.ingestion.many_small --out report.json`: measure the ingestion of many short
documents.

The baseline, in the same run, embeds and indexes the same texts one after the other, without states,
permissions, retries or metadata. The ratio shows the cost of these; comparing the last batch with the first
shows whether the cost grows with the number of documents.
"""

import argparse
import json
import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import TableClient
from azure.storage.blob import ContainerClient

from benchmarks.ingestion import serving
from local.run_all.stack import LocalStack
from shared.platform.names import DOCUMENTS, DOCUMENTS_TABLE

_AT_ONCE = 8
_POLL_S = 0.5
_TIMEOUT_S = 1800.0
_WORDS = (
    "the of and to in is was for with by at from after before between pump valve bearing station river "
    "library museum garden company winter summer report meeting engineer opened closed measured replaced"
).split()


@dataclass(frozen=True)
class BatchSpeed:
    """The speed at which a batch of documents was ingested.

    Attributes:
        present: number of earlier documents.
        per_s: documents per second of wall time.
        worker_ms: the host's CPU time per document, nearly independent of other load.
    """

    present: int
    documents: int
    per_s: float
    worker_ms: float


def main() -> None:
    arguments = _arguments()
    with (
        TemporaryDirectory(prefix="groundwork-benchmark-") as name,
        serving.running_stack(Path(name)) as stack,
    ):
        results = measure(stack, arguments.batch, arguments.before_last)
    print(json.dumps(results, indent=1))
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def measure(stack: LocalStack, batch: int, before_last: int) -> dict[str, object]:
    """Measure the baseline, a first batch of documents, and another batch once `before_last` documents exist.
    Return speeds and ratios.
    """
    texts = [_text(number) for number in range(before_last + batch)]
    began = time.perf_counter()
    for text in texts[:batch]:
        serving.embed(stack, [text])
    serving.index(stack, texts[:batch], rows_a_request=1)
    plain_per_s = round(batch / (time.perf_counter() - began), 2)
    first = _ingest(stack, texts[:batch], 0)
    if before_last > batch:
        _ingest(stack, texts[batch:before_last], batch)
    last = _ingest(stack, texts[before_last:], before_last)
    return {
        "plain_per_s": plain_per_s,
        "first": asdict(first),
        "last": asdict(last),
        "first_to_plain": round(first.per_s / plain_per_s, 2),
        "last_to_first": round(last.per_s / first.per_s, 2),
    }


def _ingest(stack: LocalStack, texts: Sequence[str], present: int) -> BatchSpeed:
    """Upload the texts, each after its access list, wait until all documents are ready, and return the
    speed.
    """
    connection = stack.storage_connection_string
    worker = psutil.Process(stack.worker_pid)
    began, used = time.perf_counter(), _cpu_s(worker)
    with (
        ContainerClient.from_connection_string(connection, DOCUMENTS) as container,
        TableClient.from_connection_string(connection, DOCUMENTS_TABLE) as table,
        ThreadPoolExecutor(_AT_ONCE) as senders,
    ):

        def send(place: int) -> None:
            name = f"small/{present + place}.txt"
            container.upload_blob(f"{name}.acl.json", b'["*"]')
            container.upload_blob(name, texts[place].encode())

        list(senders.map(send, range(len(texts))))
        while _ready(table) < present + len(texts):
            if time.perf_counter() - began > _TIMEOUT_S:
                raise RuntimeError("Not all documents were ready within half an hour.")
            stack.check()
            time.sleep(_POLL_S)
    seconds, cpu_s = time.perf_counter() - began, _cpu_s(worker) - used
    per_s, worker_ms = len(texts) / seconds, 1000 * cpu_s / len(texts)
    return BatchSpeed(present, len(texts), round(per_s, 2), round(worker_ms, 1))


def _ready(table: TableClient) -> int:
    try:
        return sum(1 for _ in table.query_entities("status eq 'ready'", select=["status"]))
    except ResourceNotFoundError:
        # The app creates the table during its first ingestion.
        return 0


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _text(number: int) -> str:
    chance = random.Random(number)
    sentences = (" ".join(chance.choices(_WORDS, k=14)).capitalize() for _ in range(6))
    return f"Note {number}.\n\n" + ". ".join(sentences) + ".\n"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ingestion.many_small", description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to which the report is written.")
    parser.add_argument(
        "--batch", type=int, default=200, help="Number of documents in the first and in the last batch."
    )
    parser.add_argument(
        "--before-last", type=int, default=1000, help="Number of documents ingested before the last batch."
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
