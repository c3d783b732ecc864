"""Whether passages say something of one thing that is asked about: a few words, not a whole question.

They do when one comes near it in meaning, or when one block says most of its words. Between languages only
names and numbers can be compared, so there it is taken for said.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from local.model_server.text.aspects import topic_stems
from local.model_server.text.languages import detect_language
from local.model_server.text.names import occurs
from local.model_server.text.passages import Passage
from local.model_server.text.ranking import rank_passages
from local.model_server.text.words import stems_of

NEAR_COSINE = 0.45  # unmeasured
SAID_SHARE = 0.6  # of its words, in one block; unmeasured
LIKELY_PASSAGES = 8


class Understanding(Protocol):
    """What the judgement needs of the embedding service."""

    understands_meaning: bool

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]: ...


def is_held(
    aspect: str, passages: Sequence[Passage], names: Collection[str], embedder: Understanding
) -> bool:
    """Whether any passage says something of an aspect; `names` are stems that only name documents."""
    wanted = topic_stems(aspect, names)
    ranked = rank_passages(aspect, passages, embedder, LIKELY_PASSAGES)
    if not ranked or not wanted:
        return bool(ranked)
    if embedder.understands_meaning and max(item.cosine for item in ranked) >= NEAR_COSINE:
        return True
    if any(_share(wanted, item.passage) >= SAID_SHARE for item in ranked):
        return True
    texts = " ".join(item.passage.reading for item in ranked)
    return detect_language(texts) != detect_language(aspect, default=detect_language(texts))


def _share(wanted: set[str], passage: Passage) -> float:
    said = set(stems_of(f"{passage.block.heading} {passage.block.text}"))
    return sum(occurs(one, said) for one in wanted) / len(wanted)
