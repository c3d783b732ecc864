"""Decides what to say to a chat request. Runs in a worker thread; no HTTP, no waiting.

A real model gets the very same messages: tasks are recognised by the schema's name and by the XML in the
user message, never by a side channel.
"""

from dataclasses import dataclass

from local.model_server.answers import answer_from_message, answer_turn
from local.model_server.embedding.service import EmbeddingService
from local.model_server.plain_chat import introduce_yourself
from local.model_server.prompt_reader import has_element
from local.model_server.protocol.replies import Reply, ToolCall
from local.model_server.protocol.requests import ChatRequest
from local.model_server.schemas import fill_schema
from local.model_server.sub_agents import take_turn
from local.model_server.tables import answer_from_rows, query_tables
from local.model_server.tasks import SUB_AGENT_TURN, task_of
from local.model_server.tools import answer_from_results, call_regardless, choose_tool_call, delegated
from local.model_server.vision import describe_images


@dataclass(frozen=True)
class Written:
    """A reply, and the name of the task it answers, for the statistics."""

    reply: Reply
    task: str


def write_reply(
    request: ChatRequest, embedder: EmbeddingService, tool_loop: int = 0, *, delegates: bool = False
) -> Written:
    """The reply to a request, not yet cut to its token limit unless it is made of whole statements.

    Args:
        tool_loop: 1 calls a tool wherever it may, 2 everywhere.
        delegates: follows advice to hand a question over to a sub-agent.
    """
    task = task_of(request)
    if tool_loop > 1:
        return Written(_call(call_regardless(request)), task)
    if schema := request.response_format and request.response_format.json_schema:
        return Written(Reply(fill_schema(schema, request, embedder)), task)
    if task == SUB_AGENT_TURN and not tool_loop and request.tool_choice in ("auto", "none"):
        return Written(take_turn(request), task)
    if task == "documents" and not tool_loop and request.tool_choice in ("auto", "none"):
        call = (delegated(request) if delegates else None) or query_tables(request)
        return Written(_call(call) if call else _answer(request, embedder), task)
    if call := choose_tool_call(request, is_tool_loop=bool(tool_loop)):
        return Written(_call(call), task)
    return _write_text(request, embedder, task)


def _call(call: ToolCall) -> Reply:
    return Reply(tool_call=call, finish_reason="tool_calls")


def _write_text(request: ChatRequest, embedder: EmbeddingService, task: str) -> Written:
    message = request.last_user_message
    if message.image_urls:
        return Written(Reply(describe_images(message, embedder)), "vision")
    if task == "documents":
        return Written(_answer(request, embedder), task)
    if has_element(message.text, "documents"):
        answer = answer_from_message(message.text, embedder)
        return Written(Reply(_fit(answer, request.output_limit, embedder)), "documents")
    if found := answer_from_results(request, embedder):
        return Written(Reply(_fit(found, request.output_limit, embedder)), "tool_results")
    return Written(Reply(introduce_yourself(message.text)), "plain")


def _answer(request: ChatRequest, embedder: EmbeddingService) -> Reply:
    text = answer_from_rows(request) or answer_turn(request, embedder)
    return Reply(_fit(text, request.output_limit, embedder))


def _fit(answer: str, limit: int | None, embedder: EmbeddingService) -> str:
    """Leave out last paragraphs or rows until the answer fits: a tag cut in half would be no citation."""
    lines = answer.split("\n")
    while limit and len(lines) > 1 and embedder.count_tokens("\n".join(lines)) > limit:
        lines.pop()
    return "\n".join(lines).rstrip()
