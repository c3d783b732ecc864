"""Tests for the pure functions of triggers: blob paths, message texts and schedules."""

import base64
from datetime import UTC, datetime
from pathlib import Path

import pytest

from local.host.blob_listener import container_of
from local.host.queue_listener import message_text
from local.host.settings import AppError
from local.host.timer_listener import Schedule, TimerStatus, TimerStatusStore


def test_a_blob_path_names_its_container() -> None:
    assert container_of("documents/{name}") == "documents"


@pytest.mark.parametrize("path", ["", "/{a}", "{container}/a", "documents", "documents/in/{name}.pdf"])
def test_another_blob_path_is_refused(path: str) -> None:
    with pytest.raises(AppError, match="container"):
        container_of(path)


@pytest.mark.parametrize("text", ["größe", '{"a": 1}', "plain, with comma"])
def test_message_is_read_plain_or_base64(text: str) -> None:
    assert message_text(text) == text
    assert message_text(base64.b64encode(text.encode()).decode()) == text


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("*/5 * * * * *", "2025-01-15T09:00:05+00:00"),
        ("0 30 9 * * MON-FRI", "2025-01-15T09:30:00+00:00"),
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
