"""Tests for detecting the features of a model endpoint from its error responses."""

from typing import Any

import httpx2
import pytest
from openai import APIStatusError

from shared.platform.language_models.features import FeatureMemory
from shared.platform.language_models.protocol import ALL_FEATURES, Feature

# Errors of OpenAI, Azure, OpenRouter, LM Studio, Ollama, vLLM, FastAPI and Gemini, as reported by users.
REFUSALS: list[tuple[int, Any, Feature]] = [
    (
        400,
        {
            "message": "Unsupported parameter: 'max_completion_tokens' is not supported with this model.",
            "param": "max_completion_tokens",
            "code": "unsupported_parameter",
        },
        "max_completion_tokens",
    ),
    (400, {"message": "Unrecognized request argument supplied: stream_options"}, "stream_usage"),
    (
        400,
        {
            "message": "Invalid parameter: 'response_format' of type 'json_schema' is not supported with "
            "this model. Learn more about supported models at the Structured Outputs guide.",
            "param": None,
        },
        "json_schema",
    ),
    (400, "'response_format.type' must be 'json_schema' or 'text'", "json_object"),
    (
        404,
        {"message": "No endpoints found that support tool use. To learn more, visit: …", "code": 404},
        "tools",
    ),
    (
        404,
        {"message": "No endpoints found that support the provided 'tool_choice' value.", "code": 404},
        "tools",
    ),
    (400, {"message": "registry.ollama.ai/library/gemma:latest does not support tools"}, "tools"),
    (
        400,
        {
            "object": "error",
            "message": '"auto" tool choice requires --enable-auto-tool-choice and '
            "--tool-call-parser to be set",
            "param": None,
            "code": 400,
        },
        "tools",
    ),
    (
        422,
        {"detail": [{"loc": ["body", "stream_options"], "msg": "extra fields not permitted"}]},
        "stream_usage",
    ),
    (
        400,
        {
            "message": "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
            "param": "messages[0].role",
            "code": "unsupported_value",
        },
        "system_role",
    ),
    (400, {"message": "System role not supported"}, "system_role"),
    (400, {"message": "Unrecognized request argument supplied: reasoning_effort"}, "reasoning_effort"),
    (400, {"message": "Developer instruction is not enabled for models/gemma-3-27b-it"}, "system_role"),
    (404, {"message": "No endpoints found that support image input"}, "images"),
    (
        400,
        {"message": "Invalid content type. image_url is only supported by certain models."},
        "images",
    ),
    (
        400,
        {
            "message": "Provider returned error",
            "metadata": {"raw": '{"error": "json_schema is not supported", "code": 7}'},
        },
        "json_schema",
    ),
]
# Errors that neither name a missing feature nor justify a permanent conclusion.
OTHERS: list[tuple[int, Any]] = [
    (400, {"message": "max_completion_tokens is too large: 99999. This model supports at most 16384."}),
    (400, {"message": "This model's maximum context length is 8192 tokens; max_tokens is part of it."}),
    (400, {"message": "You uploaded an unsupported image. Please make sure your image is valid."}),
    (404, {"message": "The model `gpt-nobody` does not exist.", "code": "model_not_found"}),
    (422, {"detail": [{"loc": ["body", "seed"], "msg": "not allowed", "input": "tools, json_schema"}]}),
    (400, None),
    (400, [1, 2]),
    (500, {"message": "stream_options made the server fall over"}),
    (429, {"message": "too many tools"}),
    (401, {"message": "no access to tools"}),
]


def refusal(status: int, body: Any) -> APIStatusError:
    request = httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions")
    return APIStatusError("refused", response=httpx2.Response(status, request=request), body=body)


@pytest.mark.parametrize(("status", "body", "missing"), REFUSALS)
def test_a_refusal_says_what_is_missing(status: int, body: Any, missing: Feature) -> None:
    used = ALL_FEATURES - ({"json_schema"} if missing == "json_object" else set())
    assert FeatureMemory().rejected_feature(refusal(status, body), used) == missing


@pytest.mark.parametrize(("status", "body"), OTHERS)
def test_other_refusals_say_nothing_of_the_protocol(status: int, body: Any) -> None:
    assert FeatureMemory().rejected_feature(refusal(status, body), ALL_FEATURES) is None


@pytest.mark.parametrize(("status", "body", "missing"), REFUSALS)
def test_what_a_request_did_not_use_was_not_refused(status: int, body: Any, missing: Feature) -> None:
    assert FeatureMemory().rejected_feature(refusal(status, body), frozenset({"base64_vectors"})) is None


def test_what_went_through_without_a_part_is_remembered() -> None:
    memory = FeatureMemory()
    memory.learn(ALL_FEATURES - {"tools"}, "m")
    memory.learn(ALL_FEATURES - {"json_schema"}, "m")  # the result of a concurrent request
    assert memory.features == ALL_FEATURES - {"tools", "json_schema"}


def test_who_is_told_learns_nothing() -> None:
    memory = FeatureMemory(frozenset({"tools"}))
    assert memory.rejected_feature(refusal(400, {"message": "no tools here"}), frozenset({"tools"})) is None
    memory.learn(frozenset(), "m")
    assert memory.features == {"tools"}
