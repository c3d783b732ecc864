"""Tests for logs, which are structured and contain neither secrets nor personal data."""

import ast
import asyncio
import json
import logging
import re
from pathlib import Path

import pytest

from shared.platform.telemetry import (
    LOGGER_NAME,
    REDACTED,
    get_logger,
    log_scope,
    note_fields,
    pseudonym,
    redact,
)

pytestmark = pytest.mark.attack("secrets in logs")

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1MSJ9.c2lnbmF0dXJl"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, LOGGER_NAME)
    return caplog


def last_line(log: pytest.LogCaptureFixture) -> dict[str, object]:
    fields: dict[str, object] = json.loads(log.records[-1].getMessage())
    return fields


def test_an_event_is_a_json_line_with_its_name_level_and_time(log: pytest.LogCaptureFixture) -> None:
    get_logger().warning("step.failed", run_id="r1", step=3)
    line = last_line(log)
    assert line.pop("timestamp")
    assert line == {"event": "step.failed", "level": "warning", "run_id": "r1", "step": 3}
    assert log.records[-1].levelno == logging.WARNING


def test_bound_fields_stay_with_the_logger(log: pytest.LogCaptureFixture) -> None:
    get_logger().bind(run_id="r7").info("run.started", question_chars=12)
    assert last_line(log)["run_id"] == "r7"


def test_a_user_is_written_as_a_pseudonym(log: pytest.LogCaptureFixture) -> None:
    get_logger().info("run.started", user_id="anna@example.org")
    assert last_line(log)["user_id"] == pseudonym("anna@example.org")
    assert "anna" not in log.text
    assert pseudonym("anna@example.org") != pseudonym("bert@example.org")


def test_a_query_is_cut_short(log: pytest.LogCaptureFixture) -> None:
    get_logger().info("search.answered", search_query="q" * 500)
    assert last_line(log)["search_query"] == "q" * 100


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("https://a.blob.core.windows.net/c/b?sv=2024-01-01&sig=aBc%2Fd%3D&se=x", "aBc%2Fd%3D"),
        ("DefaultEndpointsProtocol=https;AccountName=a;AccountKey=c2VjcmV0PT0=;X=y", "c2VjcmV0PT0="),
        ("Authorization: Bearer abc.def-ghi_jkl", "abc.def-ghi_jkl"),
        (f"token was {JWT}", JWT),
        ("api-key: 0123456789abcdef", "0123456789abcdef"),
        ('{"api_key": "0123456789abcdef"}', "0123456789abcdef"),
        ("key sk-proj-0123456789abcdef is wrong", "sk-proj-0123456789abcdef"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA"),
        ("{'Authorization': 'Basic YWJjZGVmZ2hp'}", "YWJjZGVmZ2hp"),
        ("the header was Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA"),
        ("{'api-key': '0123456789abcdef'}", "0123456789abcdef"),
        ('"{\\"api_key\\": \\"0123456789abcdef\\"}"', "0123456789abcdef"),
        ("/login?next=https%3A%2F%2Fa%2Fb%3Fsv%3D1%26sig%3DaBc%252Fd", "aBc%252Fd"),
        ("?next=a%3Fsig%3DaBcDeF", "aBcDeF"),
        ("x-functions-key: 0123456789abcdef", "0123456789abcdef"),
        ("X-MS-CLIENT-PRINCIPAL: eyJhdXRoX3R5cCI6ImFhZCJ9", "eyJhdXRoX3R5cCI6ImFhZCJ9"),
        ("POST /runtime/webhooks/blobs?code=abcDEF123 was refused", "abcDEF123"),
    ],
)
def test_what_looks_like_a_secret_is_redacted(text: str, secret: str) -> None:
    assert secret not in redact(text)
    assert REDACTED in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "sigma=3",
        "Bearer of the key",
        "the task-force",
        "What is the api version?",
        "Basic understanding of pumps",
        "error code=7",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


def test_secrets_are_redacted_in_nested_fields_too(log: pytest.LogCaptureFixture) -> None:
    get_logger().info("blob.read", request={"urls": ["https://x/?sig=c2VjcmV0"], "api_key": "k"}, token="t")
    assert "c2VjcmV0" not in log.text
    line = last_line(log)
    assert line["token"] == REDACTED
    assert line["request"] == {"urls": [f"https://x/?sig={REDACTED}"], "api_key": REDACTED}


def test_headers_are_known_by_their_names(log: pytest.LogCaptureFixture) -> None:
    get_logger().info("request.refused", headers={"X-Functions-Key": "k1", "api-key": "k2", "Accept": "text"})
    assert last_line(log)["headers"] == {
        "X-Functions-Key": REDACTED,
        "api-key": REDACTED,
        "Accept": "text",
    }


def test_an_exceptions_text_is_redacted(log: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("https://x/?sig=c2VjcmV0")
    except ValueError:
        get_logger().exception("blob.failed")
    assert "ValueError" in log.text
    assert "c2VjcmV0" not in str(last_line(log))


def test_a_silent_logger_says_nothing(log: pytest.LogCaptureFixture) -> None:
    get_logger(silent=True).bind(run_id="r1").error("run.failed")
    assert log.records == []


def test_the_sdks_do_not_log_their_requests() -> None:
    get_logger()
    logger = logging.getLogger("azure.core.pipeline.policies.http_logging_policy")
    assert not logger.isEnabledFor(logging.INFO)


def test_every_event_name_is_a_noun_and_a_verb() -> None:
    names = [
        (path.name, node.args[0].value)
        for room in ("shared", "functions", "orchestrations")
        for path in Path(room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and _is_log_call(node) and isinstance(node.args[0], ast.Constant)
    ]
    assert names
    assert [name for name in names if not re.fullmatch(r"[a-z_]+\.[a-z_]+", str(name[1]))] == []


def _is_log_call(node: ast.Call) -> bool:
    """Return whether a call has the form `get_logger(…).info("…")` or `logger.info("…")`."""
    function = node.func
    if not isinstance(function, ast.Attribute) or not node.args:
        return False
    if function.attr not in {"debug", "info", "warning", "error", "exception"}:
        return False
    return "logger" in ast.unparse(function.value)


async def test_a_scope_gives_its_fields_to_each_line_also_of_tasks(
    log: pytest.LogCaptureFixture,
) -> None:
    async def learn() -> None:
        note_fields(user_id="anna@example.org", thread_id="t1")

    with log_scope(run_id="r1", tool=""):
        await asyncio.gather(asyncio.create_task(learn()))
        get_logger().info("step.done", step=1)
        with log_scope(tool="rerank"):
            get_logger().info("tool.failed", run_id="other")
        get_logger().info("step.done")
    get_logger().info("outside.any")
    lines = [json.loads(record.getMessage()) for record in log.records]
    fields = {"run_id": "r1", "user_id": pseudonym("anna@example.org"), "thread_id": "t1"}
    assert lines[0].items() >= fields.items()
    assert "tool" not in lines[0]
    assert lines[1].items() >= {**fields, "tool": "rerank", "run_id": "other"}.items()
    assert "tool" not in lines[2]
    assert fields.keys().isdisjoint(lines[3])


async def test_two_requests_at_once_do_not_learn_from_each_other(log: pytest.LogCaptureFixture) -> None:
    async def request(number: str) -> None:
        with log_scope(request_id=number):
            await asyncio.sleep(0)
            note_fields(user_id=f"user{number}")
            await asyncio.sleep(0)
            get_logger().info("request.done")

    await asyncio.gather(request("1"), request("2"))
    lines = [json.loads(record.getMessage()) for record in log.records]
    assert {line["request_id"]: line["user_id"] for line in lines} == {
        "1": pseudonym("user1"),
        "2": pseudonym("user2"),
    }


def test_fields_that_are_noted_outside_any_scope_are_forgotten(log: pytest.LogCaptureFixture) -> None:
    note_fields(user_id="anna")
    get_logger().info("outside.any")
    assert "user_id" not in last_line(log)
