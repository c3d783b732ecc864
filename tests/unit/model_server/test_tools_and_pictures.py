"""Tests for rule-based tool calls and for captions that name their source."""

import base64
import io
import json

import pytest
from PIL import Image
from pydantic import JsonValue

from local.model_server.embedding.service import EmbeddingService
from local.model_server.protocol.requests import ChatRequest, Message
from local.model_server.respond import describe_images
from local.model_server.tools import answer_from_results, choose_tool_call

SEARCH: dict[str, JsonValue] = {
    "name": "rag_semantic_search",
    "parameters": {
        "type": "object",
        "properties": {"query": {"type": "string"}, "top_k": {"type": "integer", "default": 10}},
        "required": ["query"],
    },
}
LISTING: dict[str, JsonValue] = {
    "name": "rag_list_documents",
    "description": "List documents",
    "parameters": {},
}
QUESTION: JsonValue = {"role": "user", "content": "<question>What is the limit of the valve?</question>"}
RESULT: JsonValue = {
    "role": "tool",
    "tool_call_id": "1",
    "content": json.dumps(
        {"results": [{"doc_id": "d", "filename": "d.pdf", "content": "The limit of the valve is 9 bar."}]}
    ),
}


def request(*messages: JsonValue, **more: JsonValue) -> ChatRequest:
    tools: JsonValue = [{"type": "function", "function": LISTING}, {"type": "function", "function": SEARCH}]
    return ChatRequest.model_validate({"model": "m", "messages": list(messages), "tools": tools, **more})


def test_a_question_is_searched_for_first() -> None:
    call = choose_tool_call(request(QUESTION), is_tool_loop=False)
    assert call is not None
    assert call.name == "rag_semantic_search"
    assert json.loads(call.arguments) == {"query": "What is the limit of the valve?"}


def test_after_a_result_the_answer_is_written_from_it(embedder: EmbeddingService) -> None:
    chat_request = request(QUESTION, RESULT)
    assert choose_tool_call(chat_request, is_tool_loop=False) is None
    answer = answer_from_results(chat_request, embedder)
    assert answer is not None
    assert '<cite doc_id="d" quote="The limit of the valve is 9 bar."/>' in answer


def test_being_told_to_answer_is_no_new_question(embedder: EmbeddingService) -> None:
    instruction: JsonValue = {"role": "user", "content": "Answer now, in words."}
    answer = answer_from_results(request(QUESTION, RESULT, instruction, tool_choice="none"), embedder)
    assert answer is not None
    assert "9 bar" in answer


def test_a_message_after_an_answer_is_a_new_question(embedder: EmbeddingService) -> None:
    answered: JsonValue = {"role": "assistant", "content": "9 bar."}
    chat_request = request(QUESTION, RESULT, answered, {"role": "user", "content": "Who wrote the manual?"})
    assert answer_from_results(chat_request, embedder) is None
    call = choose_tool_call(chat_request, is_tool_loop=False)
    assert call is not None
    assert json.loads(call.arguments) == {"query": "Who wrote the manual?"}


def test_nothing_is_called_where_that_is_forbidden() -> None:
    for is_tool_loop in (False, True):
        assert choose_tool_call(request(QUESTION, tool_choice="none"), is_tool_loop) is None


@pytest.mark.parametrize(
    "content", ["not json", "[1, 2]", '{"results": "none"}', '{"results": [{"doc_id": 3}]}', "null"]
)
def test_results_without_text_are_no_ground_for_an_answer(embedder: EmbeddingService, content: str) -> None:
    tool: JsonValue = {"role": "tool", "tool_call_id": "1", "content": content}
    assert answer_from_results(request(QUESTION, tool), embedder) is None


def picture(text: str, url: str | None = None) -> Message:
    buffer = io.BytesIO()
    Image.new("RGB", (64, 48), (30, 80, 210)).save(buffer, "PNG")
    data_url = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    image: JsonValue = {"type": "image_url", "image_url": {"url": url or data_url}}
    return Message.model_validate({"role": "user", "content": [{"type": "text", "text": text}, image]})


def test_a_caption_names_the_figures_line_size_and_its_own_limits() -> None:
    caption = describe_images(picture("Text before.\nFigure 3: Cut through the valve\nText after."))
    assert caption.startswith("Figure 3: Cut through the valve. A picture of 64 x 48 pixels.")
    assert "the content was not seen" in caption


@pytest.mark.parametrize(
    "url", ["http://example.org/a.png", "data:image/png;base64,####", "data:image/png;base64,aGVsbG8="]
)
def test_a_picture_that_cannot_be_read_is_said_to_be_so(url: str) -> None:
    assert "cannot be read" in describe_images(picture("", url))
