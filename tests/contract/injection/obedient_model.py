"""A model server that obeys every instruction in a document, which is the worst case.

It implements the OpenAI protocol. It follows an instruction in the prompt literally, both in answers and in
structured outputs. A prompt without an instruction gets a plain answer.
"""

import json
import re
from collections.abc import Iterator, Mapping
from html import escape, unescape
from typing import Any

from tests.http_server import Answer, HttpServer, Request, json_answer

PLAIN_ANSWER = 'The pump runs at 15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'
PIECE_CHARS = 5  # short enough to split every tag


class ObedientModel(HttpServer):
    """A server that runs inside its context. `orders` maps a text in a document to the answer that the text
    demands.
    """

    def __init__(self, orders: Mapping[str, str]) -> None:
        super().__init__(self._complete)
        self.orders = orders
        self.bodies: list[dict[str, Any]] = []

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def _complete(self, request: Request) -> Answer:
        body = json.loads(request.body)
        text = self.reply_to(body)
        if body.get("stream"):
            return 200, {"Content-Type": "text/event-stream"}, "".join(_frames(text)).encode()
        return json_answer(_completion(text))

    def reply_to(self, body: dict[str, Any]) -> str:
        """Return the reply to one request."""
        self.bodies.append(body)
        system, user = (str(message["content"]) for message in body["messages"][:2])
        order = next((order for text, order in self.orders.items() if _stands_in(text, user)), None)
        schema = (body.get("response_format") or {}).get("json_schema")
        if schema:
            return json.dumps(_structured(schema, order, user))
        return PLAIN_ANSWER if order is None else order.replace("{system}", system).replace("{user}", user)


def _stands_in(text: str, user: str) -> bool:
    return escape(text, quote=False) in user or escape(text) in user or text in unescape(user)


def _structured(schema: dict[str, Any], order: str | None, user: str) -> Any:
    value = _least(schema["schema"], schema["schema"].get("$defs", {}))
    if schema["name"] == "PlanReply":
        question = user.partition("<question>")[2].partition("</question>")[0]
        value |= {"kind": "fact", "question": question, "searches": [question]}
    if schema["name"] == "RepairedQuotations":
        claims = re.findall(r'<claim number="(\d+)" doc_id="([^"]*)">', user)
        value = {
            "quotations": [{"number": int(number), "doc_id": doc, "quote": order} for number, doc in claims]
        }
    return value


def _least(schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """Return the smallest value that matches a schema."""
    if "$ref" in schema:
        return _least(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return _least(schema[choice][-1], definitions)
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return {name: _least(part, definitions) for name, part in schema.get("properties", {}).items()}
    plain: dict[str, Any] = {"array": [], "string": "", "integer": 0, "number": 0.0, "boolean": False}
    return plain.get(schema.get("type", ""))


def _frames(text: str) -> Iterator[str]:
    pieces = [text[start : start + PIECE_CHARS] for start in range(0, len(text), PIECE_CHARS)]
    for piece in pieces:
        yield _frame({"delta": {"role": "assistant", "content": piece}, "finish_reason": None})
    yield _frame({"delta": {}, "finish_reason": "stop"})
    yield "data: [DONE]\n\n"


def _frame(choice: dict[str, Any]) -> str:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "obedient"}
    return f"data: {json.dumps({**chunk, 'choices': [{'index': 0, **choice}]})}\n\n"


def _completion(text: str) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "obedient", "choices": [choice]}
