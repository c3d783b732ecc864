"""Captions for pictures, made from what can be known without seeing: text around, words in it, size.

Each caption says what it is made of, so that nobody takes it for a description by a vision model.
"""

import base64
import binascii
import io
import re
import shutil
import subprocess

from local.model_server.embedding.service import EmbeddingService
from local.model_server.prompt_reader import element_text
from local.model_server.protocol.requests import Message
from local.model_server.text.central import central_indices
from local.model_server.text.sentences import split_sentences

OCR_TIMEOUT_S = 10
MAX_OCR_WORDS = 40
CONTEXT_SENTENCES = 2
CAPTION_NOTE = "(Local caption: from surrounding text, size and OCR; the content was not seen.)"
LARGEST_IMAGE_BYTES = 20_000_000  # OpenAI's own limit
_DATA_URL = re.compile(r"data:image/[\w.+-]+;base64,(.+)", re.DOTALL)
_FIGURE_LINE = re.compile(
    r"^\s*((?:Figure|Fig\.|Abbildung|Abb\.|Diagram|Chart|Table)\s*\d+[^\n]*)", re.IGNORECASE | re.MULTILINE
)
_TAG = re.compile(r"</?[a-z_]+(?:\s[^>]*)?>")


def describe_images(message: Message, embedder: EmbeddingService) -> str:
    """One caption for the pictures of a message, in a few sentences."""
    captions = [_describe(url) for url in message.image_urls]
    around = _from_context(message.text, embedder)
    return " ".join(part for part in [around, *captions] if part)


def _describe(url: str) -> str:
    picture = _decode(url)
    if picture is None:
        return "(A picture that was not sent as a base64 data URL: not looked at.)"
    looks = _looks(picture)
    words = _read_words(picture)
    text = f" Words in the picture: {' '.join(words)}." if words else ""
    return f"{looks}{text} {CAPTION_NOTE}"


def _from_context(text: str, embedder: EmbeddingService) -> str:
    """The figure's own line if the text has one, else the most central sentences."""
    context = element_text(text, "surrounding_text") or element_text(text, "context") or _TAG.sub(" ", text)
    if line := _FIGURE_LINE.search(context):
        return _as_sentence(" ".join(line.group(1).split()))
    sentences = [" ".join(sentence.split()) for sentence in split_sentences(context)]
    picked = central_indices(sentences, CONTEXT_SENTENCES, embedder)
    return (
        f"Beside the text: {' '.join(_as_sentence(sentences[index]) for index in picked)}" if picked else ""
    )


def _as_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _decode(url: str) -> bytes | None:
    """Bytes of a data URL. Other addresses are never fetched: this server opens no connections."""
    found = _DATA_URL.match(url)
    if not found or len(found.group(1)) > LARGEST_IMAGE_BYTES * 4 // 3:
        return None
    try:
        return base64.b64decode(found.group(1), validate=True)
    except binascii.Error:
        return None


def _looks(picture: bytes) -> str:
    """Its size, as far as pillow can read the picture."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        return "A picture."
    try:
        with Image.open(io.BytesIO(picture)) as image:
            image.load()
            width, height = image.size
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError):
        return "A picture that cannot be read."
    return f"A picture of {width} x {height} pixels."


def _read_words(picture: bytes) -> list[str]:
    """Words by Tesseract, none where it is not installed or gives up."""
    program = shutil.which("tesseract")
    if not program:
        return []
    try:
        done = subprocess.run(
            [program, "-", "-", "--psm", "11"],
            input=picture,
            capture_output=True,
            timeout=OCR_TIMEOUT_S,
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError):
        return []
    words = re.findall(r"[^\W_]{2,}", done.stdout.decode("utf-8", "replace"))
    return words[:MAX_OCR_WORDS]
