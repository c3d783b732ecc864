"""The embedding model all-MiniLM-L6-v2 in numpy: network and weights only, without threads, cache or HTTP.

BERT with 6 layers, 12 heads and 384 dimensions; mean pooling, then normalisation. The weights come from a
package that requirements/embedding.txt pins by its hash.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

Matrix = NDArray[np.float32]

DIMENSIONS = 384
LAYERS = 6
HEADS = 12
HEAD_SIZE = DIMENSIONS // HEADS
MAX_TOKENS = 256  # published limit of the model, although it was trained with 128
LAYER_NORM_EPSILON = 1e-12
# Number of tokens per step of GELU. Intermediate results then fit into the CPU cache, which makes it four
# times as fast.
GELU_ROWS = 32


def unit(vectors: Matrix) -> Matrix:
    """Return the rows, each scaled to length 1. Zero rows stay zero."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(min=1e-12), np.float32)


class MiniLM:
    """The loaded network. It is immutable, so several threads may call `embed` at once."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        # The packaged tokenizer would truncate and pad to 128 tokens.
        self.tokenizer.enable_truncation(MAX_TOKENS)
        self.tokenizer.no_padding()
        self._weights: dict[str, Matrix] = load_file(str(folder / "model.safetensors"))
        self._layers = [self._layer_weights(index) for index in range(LAYERS)]

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return one unit vector per text, as an array of shape (len(texts), 384).

        The texts are concatenated into one sequence of tokens, so that the matrix products are few and large.
        Only attention is computed for each text separately.
        """
        encodings = self.tokenizer.encode_batch(list(texts))
        lengths = [len(encoding.ids) for encoding in encodings]
        ends = np.cumsum(lengths)
        spans = [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]
        hidden = self._embed_tokens([encoding.ids for encoding in encodings])
        for layer in self._layers:
            hidden = _run_layer(layer, hidden, spans)
        pooled = np.stack([hidden[span].mean(axis=0) for span in spans])
        return unit(pooled)

    def _embed_tokens(self, ids: Sequence[Sequence[int]]) -> Matrix:
        weights = self._weights
        words = weights["embeddings.word_embeddings.weight"][np.concatenate([np.asarray(row) for row in ids])]
        positions = weights["embeddings.position_embeddings.weight"]
        places = np.concatenate([positions[: len(row)] for row in ids])
        segment = weights["embeddings.token_type_embeddings.weight"][0]
        scale, shift = weights["embeddings.LayerNorm.weight"], weights["embeddings.LayerNorm.bias"]
        return _layer_norm(words + places + segment, scale, shift)

    def _layer_weights(self, index: int) -> dict[str, Matrix]:
        prefix = f"encoder.layer.{index}."
        own = {
            name.removeprefix(prefix): value
            for name, value in self._weights.items()
            if name.startswith(prefix)
        }
        # Stack query, key and value, so that one product computes all three, and transpose the weights only
        # once.
        parts = [f"attention.self.{part}" for part in ("query", "key", "value")]
        own["qkv.weight"] = np.ascontiguousarray(np.concatenate([own[f"{part}.weight"] for part in parts]).T)
        own["qkv.bias"] = np.concatenate([own[f"{part}.bias"] for part in parts])
        for name in ("attention.output.dense", "intermediate.dense", "output.dense"):
            own[f"{name}.weight"] = np.ascontiguousarray(own[f"{name}.weight"].T)
        return own


def _run_layer(layer: dict[str, Matrix], hidden: Matrix, spans: Sequence[slice]) -> Matrix:
    """Run one transformer layer over the tokens of all texts. `spans` separates the texts; input and output
    have shape (tokens, 384).
    """
    projected = hidden @ layer["qkv.weight"] + layer["qkv.bias"]
    context = np.empty_like(hidden)
    for span in spans:
        context[span] = _attend(projected[span])
    attended = context @ layer["attention.output.dense.weight"] + layer["attention.output.dense.bias"]
    hidden = _layer_norm(
        attended + hidden,
        layer["attention.output.LayerNorm.weight"],
        layer["attention.output.LayerNorm.bias"],
    )
    inner: Matrix = hidden @ layer["intermediate.dense.weight"]
    inner += layer["intermediate.dense.bias"]
    outer = _gelu(inner) @ layer["output.dense.weight"] + layer["output.dense.bias"]
    return _layer_norm(outer + hidden, layer["output.LayerNorm.weight"], layer["output.LayerNorm.bias"])


def _attend(projected: Matrix) -> Matrix:
    """Return the self-attention output of one text, shape (tokens, 384). `projected` stacks query, key and
    value, shape (tokens, 3 x 384).
    """
    length = len(projected)
    query, key, value = projected.reshape(length, 3, HEADS, HEAD_SIZE).transpose(1, 2, 0, 3)
    scores = query @ key.transpose(0, 2, 1) * np.float32(HEAD_SIZE**-0.5)
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    context = (scores @ value).transpose(1, 0, 2).reshape(length, DIMENSIONS)
    return np.asarray(context, dtype=np.float32)


def _layer_norm(hidden: Matrix, scale: Matrix, shift: Matrix) -> Matrix:
    centred: Matrix = hidden - hidden.mean(axis=-1, keepdims=True)
    variance: Matrix = np.einsum("ij,ij->i", centred, centred)[:, None] / np.float32(DIMENSIONS)
    normed = centred / np.sqrt(variance + np.float32(LAYER_NORM_EPSILON)) * scale + shift
    return np.asarray(normed, dtype=np.float32)


def _gelu(inner: Matrix) -> Matrix:
    """Apply the exact GELU, x * Phi(x), in place. numpy has no error function, so it is approximated.

    Error of the approximation: below 1.5e-7. Source: Abramowitz and Stegun, formula 7.1.26.
    """
    for start in range(0, len(inner), GELU_ROWS):
        rows = inner[start : start + GELU_ROWS]
        size = np.abs(rows)
        size *= np.float32(0.5**0.5)
        t = size * np.float32(0.3275911)
        t += np.float32(1)
        np.reciprocal(t, out=t)
        tail = t * np.float32(1.061405429)
        for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
            tail += np.float32(coefficient)
            tail *= t
        np.multiply(size, size, out=t)
        np.negative(t, out=t)
        np.exp(t, out=t)
        tail *= t  # 1 - erf(|x| / sqrt(2))
        tail *= size
        tail *= np.float32(0.5**0.5)
        np.maximum(rows, np.float32(0), out=rows)
        rows -= tail  # x * Phi(x) = max(x, 0) - |x| * tail / 2
    return inner
