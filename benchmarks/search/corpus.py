"""Generated blocks, principals and questions, identical in every run. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

DIMENSIONS = 384
WORDS = 20_000
TOPICS = 200
SEED = 12
INDEX = "blocks"

# Principals by the percentage of blocks that each may read. The owner may read every block.
PRINCIPALS = {0.5: "group-tiny", 5.0: "group-small", 50.0: "group-half"}

FIELDS: list[dict[str, Any]] = [
    {"name": "block_id", "type": "Edm.String", "key": True, "searchable": False, "facetable": False},
    {
        "name": "content",
        "type": "Edm.String",
        "analyzer": "standard.lucene",
        "filterable": False,
        "sortable": False,
    },
    {"name": "page_number", "type": "Edm.Int32"},
    {"name": "access_control_list", "type": "Collection(Edm.String)", "searchable": False},
    {
        "name": "content_vector",
        "type": "Collection(Edm.Single)",
        "searchable": True,
        "retrievable": False,
        "dimensions": DIMENSIONS,
        "vectorSearchProfile": "exact",
    },
]

DEFINITION: dict[str, Any] = {
    "name": INDEX,
    "fields": FIELDS,
    "vectorSearch": {
        "algorithms": [{"name": "knn", "kind": "exhaustiveKnn"}],
        "profiles": [{"name": "exact", "algorithm": "knn"}],
    },
}


@dataclass(frozen=True)
class Question:
    text: str
    vector: list[float]


def batches(count: int, size: int) -> Iterator[list[dict[str, Any]]]:
    """Yield `count` generated blocks in batches of `size`. The words (120 to 200) and the vector of a block
    belong to the same topic.
    """
    chance = np.random.default_rng(SEED)
    centres = _centres()
    for start in range(0, count, size):
        yield [_block(chance, centres, number) for number in range(start, min(start + size, count))]


def questions(count: int) -> list[Question]:
    """Return generated questions. Each has three to five words of one topic and a vector near the centre of
    that topic.
    """
    chance = np.random.default_rng(SEED + 1)
    centres = _centres()
    result = []
    for _ in range(count):
        topic = int(chance.integers(TOPICS))
        words = _words(chance, topic, int(chance.integers(3, 6)))
        result.append(Question(" ".join(words), _near(chance, centres[topic])))
    return result


def acl_filter(share: float | None, extra: str = "") -> str | None:
    """Return the security filter of a user who may read this percentage of the blocks. `extra` adds a
    principal to the filter.
    """
    if share is None:
        return None
    principals = f"u1,{PRINCIPALS[share]}" + (f",{extra}" if extra else "")
    return f"access_control_list/any(acl: search.in(acl, '{principals}', ','))"


def _centres() -> npt.NDArray[np.float64]:
    return np.random.default_rng(SEED + 2).normal(size=(TOPICS, DIMENSIONS))


def _block(chance: np.random.Generator, centres: npt.NDArray[np.float64], number: int) -> dict[str, Any]:
    topic = int(chance.integers(TOPICS))
    words = _words(chance, topic, int(chance.integers(120, 201)))
    readers = [name for share, name in PRINCIPALS.items() if chance.random() < share / 100]
    return {
        "block_id": f"block-{number}",
        "content": " ".join(words) + ".",
        "page_number": int(chance.integers(1, 300)),
        "access_control_list": [f"owner-{number % 500}", *readers],
        "content_vector": _near(chance, centres[topic]),
    }


def _words(chance: np.random.Generator, topic: int, count: int) -> list[str]:
    """Return random words, half of them drawn from the whole vocabulary by frequency, half from the hundred
    words of the topic.
    """
    common = chance.zipf(1.3, count) % WORDS
    own = topic * 100 + chance.integers(0, 100, count)
    picked = np.where(chance.random(count) < 0.5, common, own)
    return [f"w{word}" for word in picked]


def _near(chance: np.random.Generator, centre: npt.NDArray[np.float64]) -> list[float]:
    vector = centre + chance.normal(size=DIMENSIONS)
    return [round(float(number), 5) for number in vector / np.linalg.norm(vector)]
