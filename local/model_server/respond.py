"""Decides what to say to a chat request. Runs in a worker thread; no HTTP, no waiting.

A real model gets the very same messages: tasks are recognised by the schema's name and by the XML in the
user message, never by a side channel.
"""

from local.model_server.answers import answer_turn
from local.model_server.embedding.service import EmbeddingService
from local.model_server.protocol.replies import Reply, calling
from local.model_server.protocol.requests import ChatRequest
from local.model_server.tables import answer_from_rows, query_tables
from local.model_server.tasks import SUB_AGENT_TURN, fill_schema, task_of
from local.model_server.tools import (
    answer_from_results,
    call_regardless,
    choose_tool_call,
    delegated,
    take_turn,
)
from local.model_server.vision import describe_images

CHAT_MODEL = "groundwork-extractive"
INTRODUCTION = (
    f"I am {CHAT_MODEL}, the local stand-in for a language model: I quote sentences from documents that a "
    "prompt holds, and write nothing of my own. This message holds no documents, so there is nothing that I "
    "could answer from. Configure a real model for open conversation."
)


def write_reply(
    request: ChatRequest, embedder: EmbeddingService, tool_loop: int = 0, *, delegates: bool = False
) -> Reply:
    """The reply to a request, not yet cut to its token limit unless it is made of whole statements.

    Args:
        tool_loop: 1 calls a tool wherever it may, 2 everywhere.
        delegates: follows advice to hand a question over to a sub-agent.
    """
    if tool_loop > 1:
        return calling(call_regardless(request))
    if schema := request.response_format and request.response_format.json_schema:
        return Reply(fill_schema(schema, request, embedder))
    task = task_of(request)
    if tool_loop or request.tool_choice == "required" or task not in (SUB_AGENT_TURN, "documents"):
        call = choose_tool_call(request, is_tool_loop=bool(tool_loop))
    elif task == SUB_AGENT_TURN:
        return take_turn(request)
    else:
        call = (delegated(request) if delegates else None) or query_tables(request)
    return calling(call) if call else Reply(_write_text(request, embedder, task))


def _write_text(request: ChatRequest, embedder: EmbeddingService, task: str) -> str:
    if task == "documents":
        return _answer(request, embedder)
    if request.last_user_message.image_urls:
        return describe_images(request.last_user_message)
    return answer_from_results(request, embedder) or INTRODUCTION


def _answer(request: ChatRequest, embedder: EmbeddingService) -> str:
    """Without last paragraphs or rows until it fits its limit: a tag cut in half would be no citation."""
    lines = (answer_from_rows(request) or answer_turn(request, embedder)).split("\n")
    limit = request.output_limit
    while limit and len(lines) > 1 and embedder.count_tokens("\n".join(lines)) > limit:
        lines.pop()
    return "\n".join(lines).rstrip()
