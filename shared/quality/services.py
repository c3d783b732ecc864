"""The clients and stores used by `shared.quality`, a part of `shared.wiring.Services`."""

from typing import Protocol

from shared.platform.blobs import BlobStore
from shared.quality.store import QualityStore
from shared.runs.run_log import RunLog
from shared.runs.run_store import RunStore


class QualityServices(Protocol):
    """The external services that quality metrics need."""

    blobs: BlobStore
    run_log: RunLog
    runs: RunStore
    quality: QualityStore
