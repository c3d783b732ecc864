"""Tests for structured outputs: generated values fit any schema, and registered ones the requested schema."""

import json
import logging
from enum import Enum
from typing import Literal

import pytest
from pydantic import BaseModel, Field, JsonValue, TypeAdapter

from local.model_server.embedding.service import EmbeddingService
from local.model_server.filler import fill
from local.model_server.protocol.requests import JsonSchema
from local.model_server.tasks import HANDLERS, fill_schema
from tests.unit.model_server.conftest import request


class Colour(Enum):
    RED = "red"


class Leaf(BaseModel):
    name: str = Field(min_length=40)
    size: int = Field(ge=3)
    kind: Literal["a", "b"]


class Tree(BaseModel):
    leaf: Leaf
    leaves: list[Leaf] = Field(min_length=2)
    maybe: Leaf | None
    colour: Colour
    share: float = Field(gt=0.5)
    fixed: Literal["only"]
    flag: bool
    children: list["Tree"]


def test_the_filler_satisfies_a_schema_with_everything_in_it() -> None:
    Tree.model_validate(fill(Tree.model_json_schema()))


@pytest.mark.parametrize(
    "schema", [{}, {"type": "object"}, {"$ref": "#/nowhere"}, {"anyOf": []}, {"type": ["string", "null"]}]
)
def test_a_strange_schema_is_filled_without_an_error(schema: dict[str, JsonValue]) -> None:
    json.dumps(fill(schema))


def test_an_unknown_schema_is_filled_with_a_warning(
    embedder: EmbeddingService, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        text = fill_schema(JsonSchema(name="Leaf", schema=Leaf.model_json_schema()), request(""), embedder)
    Leaf.model_validate_json(text)
    assert "schema.unknown name=Leaf" in caplog.text


def test_a_field_that_a_handler_does_not_know_is_filled_with_a_warning(
    embedder: EmbeddingService, caplog: pytest.LogCaptureFixture
) -> None:
    schema = TypeAdapter(dict[str, JsonValue]).validate_python(
        {"type": "object", "properties": {"quotations": {"type": "array"}, "certainty": {"type": "integer"}}}
    )
    with caplog.at_level(logging.WARNING):
        json_schema = JsonSchema(name="RepairedQuotations", schema=schema)
        values = json.loads(fill_schema(json_schema, request("<claims/>"), embedder))
    assert values == {"quotations": [], "certainty": 0}
    assert "fields=certainty" in caplog.text


def test_every_handler_copes_with_a_message_that_is_no_markup(embedder: EmbeddingService) -> None:
    for handler in HANDLERS.values():
        json.dumps(handler(request("no markup here"), embedder))
