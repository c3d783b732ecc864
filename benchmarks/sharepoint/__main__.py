"""`python -m benchmarks.sharepoint --out report.json`: compare a library's first synchronisation with blobs.

Each round ingests equally many small texts twice: uploaded to the documents container after their sidecars,
and synchronised from a new library of the local Graph stand-in. The order alternates. Every batch has a new
worker process, so the peak memory is that of the batch. The result is the ratio of the median times, which
other load on the machine affects equally.
"""

import argparse
import json
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import TableClient
from azure.storage.blob import ContainerClient

from benchmarks.memory import peak_mb
from local.run_all.stack import LocalStack
from local.run_all.stack_settings import FREE_PORTS, StackSettings
from shared.platform.names import DOCUMENTS, DOCUMENTS_TABLE
from tests.fakes.sharepoint_server import SharePointServer, group, user

MAX_RATIO = 1.2
MAX_GROWTH_MB = 50
_SITE = "/sites/benchmark"
_READERS = ("00000001-aaaa-4bbb-8ccc-000000000000", "bbbbbbbb-0000-4000-8000-000000000001")
_AT_ONCE = 8
_POLL_S = 1.0
_SETTLE_S = 5.0
_TIMEOUT_S = 3600.0
_WORDS = (
    "the of and to in is was for with by at from after before between pump valve bearing station river "
    "library museum garden company winter summer report meeting engineer opened closed measured replaced"
).split()


@dataclass(frozen=True)
class Batch:
    """The measurements of one ingestion of all files.

    Attributes:
        source: `blobs` or `library`.
        seconds: time from the first upload, or the first request of the synchronisation, until all files were
            ready.
        worker_cpu_s: CPU time of the worker.
        peak_mb: peak resident memory of the worker, or None if the system doesn't report it.
    """

    source: str
    files: int
    seconds: float
    worker_cpu_s: float
    peak_mb: float | None


def main() -> int:
    """Run the benchmark and write the report. Return 1 if a limit is exceeded."""
    arguments = _arguments()
    with TemporaryDirectory(prefix="groundwork-sharepoint-") as folder, SharePointServer() as server:
        # A site exists only if it has a library.
        server.drive("Empty", site=_SITE)
        values = {**server.settings(_SITE), **server.environment}
        overrides = {name: str(value) for name, value in values.items()}
        with LocalStack(StackSettings(FREE_PORTS, Path(folder)), overrides) as stack:
            results = Comparison(stack, server).measure(arguments.files, arguments.rounds)
    text = json.dumps(results, indent=1)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n", encoding="utf-8")
    return int(not results["is_within_limits"])


class Comparison:
    """A comparison of batches that one running stack ingests from a library and from blobs."""

    def __init__(self, stack: LocalStack, server: SharePointServer) -> None:
        self._stack = stack
        self._server = server
        # Number of documents ingested by earlier batches.
        self._present = 0

    def measure(self, sizes: Sequence[int], rounds: int) -> dict[str, object]:
        """Ingest all batches. Return the ratios of their times, the memory growth, and whether both are
        within their limits.
        """
        warm = self._ingest("blobs", 20), self._ingest("library", 20)
        batches = []
        for files in sizes:
            for number in range(rounds):
                order = ("blobs", "library") if number % 2 == 0 else ("library", "blobs")
                for source in order:
                    batch = self._ingest(source, files)
                    print(batch, file=sys.stderr, flush=True)
                    batches.append(batch)
        ratios = {files: ratio_of(batches, files) for files in sizes}
        growth = growth_mb(batches, sizes)
        return {
            "ratios": ratios,
            "memory_growth_mb": growth,
            "is_within_limits": max(ratios.values()) <= MAX_RATIO and (growth or 0) <= MAX_GROWTH_MB,
            "batches": [asdict(batch) for batch in (*warm, *batches)],
        }

    def _ingest(self, source: str, files: int) -> Batch:
        """Restart the host, ingest new files from the given source and return the measurements."""
        ways: dict[str, Callable[[list[str]], float]] = {
            "blobs": self._upload_blobs,
            "library": self._fill_library,
        }
        self._stack.stop_host()
        began = ways[source]([_text(self._present + number) for number in range(files)])
        self._wait_until_ready(self._present + files)
        seconds = time.perf_counter() - began
        self._present += files
        worker = psutil.Process(self._stack.worker_pid)
        times = worker.cpu_times()
        return Batch(
            source, files, round(seconds, 1), round(times.user + times.system, 1), peak_mb(worker.pid)
        )

    def _upload_blobs(self, texts: list[str]) -> float:
        """Start the host, and upload the texts as blobs, each after its access list. Return the time when the
        upload started.
        """
        self._stack.start_host()
        # Wait until the first run of the timer has ended.
        time.sleep(_SETTLE_S)
        began = time.perf_counter()
        connection = self._stack.storage_connection_string
        with (
            ContainerClient.from_connection_string(connection, DOCUMENTS) as container,
            ThreadPoolExecutor(_AT_ONCE) as senders,
        ):

            def send(place: int) -> None:
                name = f"notes/{self._present + place}.txt"
                source_url = f"https://contoso.sharepoint.com/{name}"
                sidecar = json.dumps({"acl": _READERS, "source_url": source_url})
                container.upload_blob(f"{name}.acl.json", sidecar.encode())
                container.upload_blob(name, texts[place].encode())

            list(senders.map(send, range(len(texts))))
        return began

    def _fill_library(self, texts: list[str]) -> float:
        """Fill a new library, and start the host, which synchronises it. Return the time of the first request
        to the library.
        """
        drive = self._server.drive(f"Notes {self._present}", site=_SITE)
        for place, text in enumerate(texts):
            permissions = [user(_READERS[0]), group(_READERS[1])]
            name = f"{self._present + place}.txt"
            self._server.file(drive, name, text.encode(), permissions=permissions)
        started = threading.Event()
        moments: list[float] = []

        def note(target: str) -> None:
            if drive.drive_id in target and not moments:
                moments.append(time.perf_counter())
                started.set()

        self._server.on_request = note
        self._stack.start_host()
        if not started.wait(_TIMEOUT_S):
            raise RuntimeError("The synchronisation of the library did not start.")
        self._server.on_request = lambda _: None
        return moments[0]

    def _wait_until_ready(self, documents: int) -> None:
        began = time.perf_counter()
        connection = self._stack.storage_connection_string
        with TableClient.from_connection_string(connection, DOCUMENTS_TABLE) as table:
            while _ready(table) < documents:
                if time.perf_counter() - began > _TIMEOUT_S:
                    raise RuntimeError("Not all documents were ready within an hour.")
                self._stack.check()
                time.sleep(_POLL_S)


def _ready(table: TableClient) -> int:
    try:
        statuses = [row["status"] for row in table.query_entities("RowKey eq 'document'", select=["status"])]
    except ResourceNotFoundError:
        # The app creates the table during its first ingestion.
        return 0
    if "failed" in statuses:
        raise RuntimeError("A file could not be ingested; see the log of the host.")
    return statuses.count("ready")


def ratio_of(batches: Sequence[Batch], files: int) -> float:
    """Return the median time of the library batches with this number of files, divided by the median time of
    the blob batches.
    """
    medians = {
        source: statistics.median(
            batch.seconds for batch in batches if (batch.source, batch.files) == (source, files)
        )
        for source in ("blobs", "library")
    }
    return round(medians["library"] / medians["blobs"], 2)


def growth_mb(batches: Sequence[Batch], sizes: Sequence[int]) -> float | None:
    """Return the growth of the worker's peak memory, in MB, between the smallest and the largest library
    batches.
    """
    peaks = [
        [batch.peak_mb for batch in batches if batch.source == "library" and batch.files == files]
        for files in (min(sizes), max(sizes))
    ]
    smallest, largest = ([peak for peak in some if peak is not None] for some in peaks)
    return round(max(largest) - max(smallest), 1) if smallest and largest else None


def _text(number: int) -> str:
    chance = random.Random(number)
    sentences = (" ".join(chance.choices(_WORDS, k=14)).capitalize() for _ in range(6))
    return f"Note {number}.\n\n" + ". ".join(sentences) + ".\n"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sharepoint", description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to which the report is written.")
    parser.add_argument(
        "--files",
        type=int,
        nargs="+",
        default=[1000],
        help=("Number of files in each batch. Several numbers may be given."),
    )
    parser.add_argument("--rounds", type=int, default=3, help="Number of batches per source and size.")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
