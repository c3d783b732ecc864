"""Exact nearest-neighbour search over one vector field, in memory."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from local.search_server.edm import Vector
from local.search_server.text_index import Mask, Slots

_FIRST_CAPACITY: Final = 1024
# If a smaller share of the rows is selected, copying those rows is cheaper than multiplying all rows (100,000
# rows of 384 numbers).
GATHER_BELOW: Final = 0.3

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class VectorRows:
    """An immutable snapshot of unit vectors. `matrix[i]` belongs to `slots[i]`, and the slots are
    ascending.
    """

    matrix: Matrix
    slots: Slots

    def nearest(self, query: Vector, mask: Mask, k: int) -> list[tuple[int, float]]:
        """Return the `k` nearest vectors in the mask as (slot, score), best first.

        The score is 1 / (1 + (1 - cosine)).
        """
        chosen = np.flatnonzero(mask[self.slots])
        if not len(chosen) or k <= 0:
            return []
        if len(chosen) < GATHER_BELOW * len(self.slots):
            similarity = np.take(self.matrix, chosen, axis=0) @ unit(query)
        else:
            similarity = self.matrix @ unit(query)
            similarity = similarity if len(chosen) == len(self.slots) else similarity[chosen]
        top = np.argpartition(-similarity, k - 1)[:k] if k < len(chosen) else np.arange(len(chosen))
        slots = self.slots[chosen[top]]
        order = np.lexsort((slots, -similarity[top]))
        scores = 1 / (2 - similarity[top][order])
        return [(int(slot), float(score)) for slot, score in zip(slots[order], scores, strict=True)]


class VectorColumn:
    """The growing vectors of one field. The caller must ensure that writes don't overlap; threads can share
    snapshots from `rows()`.
    """

    def __init__(self, dimensions: int) -> None:
        self._matrix = np.empty((_FIRST_CAPACITY, dimensions), dtype=np.float32)
        self._slots = np.empty(_FIRST_CAPACITY, dtype=np.int64)
        self._count = 0

    def append(self, slot: int, vector: Vector) -> None:
        """Append a vector. Slots must be ascending; rows in earlier snapshots don't change."""
        if self._count == len(self._slots):
            self._move_to(2 * self._count, np.arange(self._count))
        self._matrix[self._count] = unit(vector)
        self._slots[self._count] = slot
        self._count += 1

    def rows(self) -> VectorRows:
        return VectorRows(self._matrix[: self._count], self._slots[: self._count])

    def drop_dead(self, alive: Mask) -> None:
        """Remove the rows of deleted documents, but only if they are more than half of all rows."""
        living = np.flatnonzero(alive[self._slots[: self._count]])
        if self._count > _FIRST_CAPACITY and 2 * len(living) < self._count:
            self._move_to(max(_FIRST_CAPACITY, 2 * len(living)), living)

    def size_bytes(self) -> int:
        return self._count * self._matrix.shape[1] * self._matrix.itemsize

    def _move_to(self, capacity: int, rows: npt.NDArray[np.int64]) -> None:
        # Allocate new arrays, because running searches still read the old ones.
        matrix = np.empty((capacity, self._matrix.shape[1]), dtype=np.float32)
        slots = np.empty(capacity, dtype=np.int64)
        matrix[: len(rows)] = self._matrix[rows]
        slots[: len(rows)] = self._slots[rows]
        self._matrix, self._slots, self._count = matrix, slots, len(rows)


def unit(vector: Vector) -> Vector:
    """Return the vector scaled to length 1. A zero vector is returned unchanged."""
    length = float(np.linalg.norm(vector))
    return vector if length == 0 else np.asarray(vector / np.float32(length), dtype=np.float32)
