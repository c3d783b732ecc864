"""The pure parts of the triggers: blob paths, message texts, schedules."""

import base64
from datetime import UTC, datetime
from pathlib import Path

import pytest

from local.host.blob_listener import compile_blob_path
from local.host.queue_listener import message_text
from local.host.settings import AppError
from local.host.timer_listener import Schedule, TimerStatus, TimerStatusStore


@pytest.mark.parametrize(
    ("path", "name", "expected"),
    [
        ("documents/{name}", "a/b.pdf", {"name": "a/b.pdf"}),
        ("documents/in/{name}.pdf", "in/a.pdf", {"name": "a"}),
        ("documents/in/{name}.pdf", "out/a.pdf", None),
        ("documents/{folder}/{name}", "x/y", {"folder": "x", "name": "y"}),
        ("documents", "anything", {}),
    ],
)
def test_blob_path_is_matched(path: str, name: str, expected: dict[str, str] | None) -> None:
    container, pattern = compile_blob_path(path)
    matched = pattern.fullmatch(name)
    assert container == "documents"
    assert (matched.groupdict() if matched else None) == expected


@pytest.mark.parametrize("path", ["", "/a", "{container}/a"])
def test_blob_path_needs_a_container(path: str) -> None:
    with pytest.raises(AppError, match="container"):
        compile_blob_path(path)


@pytest.mark.parametrize("text", ["größe", '{"a": 1}', "plain, with comma"])
def test_message_is_read_plain_or_base64(text: str) -> None:
    assert message_text(text, base64_expected=True) == text
    assert message_text(base64.b64encode(text.encode()).decode(), base64_expected=True) == text
    assert message_text("aGFsbG8=", base64_expected=False) == "aGFsbG8="


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("*/5 * * * * *", "2025-01-15T09:00:05+00:00"),
        ("0 30 9 * * MON-FRI", "2025-01-15T09:30:00+00:00"),
        ("0 */10 * * *", "2025-01-15T10:00:00+00:00"),  # cron's five fields: minute first
        ("0 0 0 * * 0", "2025-01-19T00:00:00+00:00"),
    ],
)
def test_schedule_has_seconds_first(expression: str, expected: str) -> None:
    moment = datetime(2025, 1, 15, 9, 0, tzinfo=UTC)
    assert Schedule(expression).after(moment).isoformat() == expected


@pytest.mark.parametrize("expression", ["", "every day", "99 * * * * *", "* * * * * * *"])
def test_unreadable_schedule_is_refused(expression: str) -> None:
    with pytest.raises(AppError, match="schedule"):
        Schedule(expression)


def test_timer_status_survives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "host.sqlite3"
    moment = datetime(2025, 1, 15, 9, 0, tzinfo=UTC)
    store = TimerStatusStore(path)
    assert store.read("tidy") is None
    store.write("tidy", TimerStatus(None, moment))
    store.close()
    store = TimerStatusStore(path)
    assert store.read("tidy") == TimerStatus(None, moment)
    store.close()
