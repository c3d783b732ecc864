"""Chooses the code that writes the reply to a chat request. Runs in a worker thread, without I/O.

Tasks are recognised by the schema's name and the XML in the user message, never by a side channel, so a real
model gets the same messages.
"""

import base64
import binascii
import io
import re

from PIL import Image, UnidentifiedImageError

from local.model_server.answers import answer_turn
from local.model_server.embedding.service import EmbeddingService
from local.model_server.prompt_reader import element_text
from local.model_server.protocol.replies import Reply, tool_call_reply
from local.model_server.protocol.requests import ChatRequest, Message
from local.model_server.tables import answer_from_rows, query_tables
from local.model_server.tasks import SUB_AGENT_TURN, fill_schema, task_of
from local.model_server.text.passages import split_sentences, spread
from local.model_server.tools import (
    answer_from_results,
    choose_tool_call,
    delegate_call,
    force_tool_call,
    take_turn,
)

CHAT_MODEL = "groundwork-extractive"
INTRODUCTION = (
    f"I am {CHAT_MODEL}, the local stand-in for a language model: I quote sentences from documents that a "
    "prompt holds, and write nothing of my own. This message holds no documents, so there is nothing that I "
    "could answer from. Configure a real model for open conversation."
)


def write_reply(
    request: ChatRequest, embedder: EmbeddingService, tool_loop: int = 0, *, delegates: bool = False
) -> Reply:
    """Return the reply to a chat request. Answers with documents are already within their token limit; the
    caller must truncate all other replies.

    Args:
        tool_loop: 1 calls a tool wherever allowed, 2 everywhere.
        delegates: delegates each question once.
    """
    if tool_loop > 1:
        return tool_call_reply(force_tool_call(request))
    if schema := request.response_format and request.response_format.json_schema:
        return Reply(fill_schema(schema, request, embedder))
    task = task_of(request)
    if tool_loop or task not in (SUB_AGENT_TURN, "documents"):
        call = choose_tool_call(request, is_tool_loop=bool(tool_loop))
    elif task == SUB_AGENT_TURN:
        return take_turn(request)
    else:
        call = (delegate_call(request) if delegates else None) or query_tables(request)
    return tool_call_reply(call) if call else Reply(_write_text(request, embedder, task))


def _write_text(request: ChatRequest, embedder: EmbeddingService, task: str) -> str:
    if task == "documents":
        return _answer(request, embedder)
    if request.last_user_message.image_urls:
        return describe_images(request.last_user_message)
    return answer_from_results(request, embedder) or INTRODUCTION


def _answer(request: ChatRequest, embedder: EmbeddingService) -> str:
    """Return an answer within its token limit. Lines are dropped from the end, because a truncated citation
    tag is invalid.
    """
    lines = (answer_from_rows(request) or answer_turn(request, embedder)).split("\n")
    limit = request.output_limit
    while limit and len(lines) > 1 and embedder.count_tokens("\n".join(lines)) > limit:
        lines.pop()
    return "\n".join(lines).rstrip()


CONTEXT_SENTENCES = 2
CAPTION_NOTE = "(Local caption: from surrounding text and size; the content was not seen.)"
_FIGURE_LINE = re.compile(
    r"^\s*((?:Figure|Fig\.|Abbildung|Abb\.|Diagram|Chart|Table)\s*\d+[^\n]*)", re.IGNORECASE | re.MULTILINE
)


def describe_images(message: Message) -> str:
    """Return a caption for the pictures in a message: the line with the figure number or else sentences of
    the surrounding text, followed by the picture sizes.
    """
    context = element_text(message.text, "surrounding_text") or re.sub(r"</?[a-z_]+[^>]*>", " ", message.text)
    line = _FIGURE_LINE.search(context)
    sentences = [line[1]] if line else split_sentences(context)
    chosen = spread(sentences, CONTEXT_SENTENCES)
    around = [" ".join(one.split()).removesuffix(".") + "." for one in chosen]
    return " ".join([*around, *(_size(url) for url in message.image_urls), CAPTION_NOTE])


def _size(url: str) -> str:
    """Return a sentence with the size of a picture given as a data URL. Remote URLs are never fetched."""
    try:
        with Image.open(io.BytesIO(base64.b64decode(url.partition(";base64,")[2], validate=True))) as image:
            width, height = image.size
    except (binascii.Error, UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError):
        return "A picture that cannot be read."
    return f"A picture of {width} x {height} pixels."
