"""Captions for pictures, made from what can be known without seeing: the text around, and the size.

Each caption says what it is made of, so that nobody takes it for a description by a vision model.
"""

import base64
import binascii
import io
import re

from PIL import Image, UnidentifiedImageError

from local.model_server.prompt_reader import element_text
from local.model_server.protocol.requests import Message
from local.model_server.text.sentences import split_sentences, spread

CONTEXT_SENTENCES = 2
CAPTION_NOTE = "(Local caption: from surrounding text and size; the content was not seen.)"
_FIGURE_LINE = re.compile(
    r"^\s*((?:Figure|Fig\.|Abbildung|Abb\.|Diagram|Chart|Table)\s*\d+[^\n]*)", re.IGNORECASE | re.MULTILINE
)


def describe_images(message: Message) -> str:
    """One caption for the pictures of a message: the figure's own line or some sentences, and sizes."""
    context = element_text(message.text, "surrounding_text") or re.sub(r"</?[a-z_]+[^>]*>", " ", message.text)
    line = _FIGURE_LINE.search(context)
    sentences = [line[1]] if line else split_sentences(context)
    chosen = spread(sentences, CONTEXT_SENTENCES)
    around = [" ".join(one.split()).removesuffix(".") + "." for one in chosen]
    return " ".join([*around, *(_size(url) for url in message.image_urls), CAPTION_NOTE])


def _size(url: str) -> str:
    """Addresses of the web are never fetched: this server opens no connections."""
    try:
        with Image.open(io.BytesIO(base64.b64decode(url.partition(";base64,")[2], validate=True))) as image:
            width, height = image.size
    except (binascii.Error, UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError):
        return "A picture that cannot be read."
    return f"A picture of {width} x {height} pixels."
