"""Tests for host.json, local.settings.json, setting references and connection names."""

import json
from pathlib import Path

import pytest

from local.host.settings import (
    SettingError,
    fill_environment,
    is_disabled,
    parse_timespan,
    read_host_options,
    resolve_references,
    storage_connection,
)


@pytest.mark.parametrize(
    ("text", "seconds"), [("00:00:30", 30), ("01:02:03", 3723), ("1.00:00:00", 86400), ("00:00:00.5", 0.5)]
)
def test_time_span_is_read(text: str, seconds: float) -> None:
    assert parse_timespan(text) == seconds


@pytest.mark.parametrize("text", ["30", "", "1:2", "abc"])
def test_other_time_spans_are_refused(text: str) -> None:
    with pytest.raises(SettingError):
        parse_timespan(text)


def test_options_are_read_and_missing_ones_have_defaults(tmp_path: Path) -> None:
    (tmp_path / "host.json").write_text(
        json.dumps(
            {
                "functionTimeout": "00:10:00",
                "extensions": {
                    "http": {"routePrefix": "v1"},
                    "queues": {"maxDequeueCount": 4, "maxPollingInterval": "00:00:02"},
                    "durableTask": {"hubName": "groundwork", "maxConcurrentActivityFunctions": 64},
                },
            }
        )
    )
    options = read_host_options(tmp_path)
    assert (options.route_prefix, options.function_timeout_s, options.task_hub) == ("v1", 600.0, "groundwork")
    assert options.max_parallel_activities == 64
    assert (options.queues.max_dequeue_count, options.queues.max_polling_interval_s) == (4, 2.0)


def test_no_host_json_means_defaults_and_minus_one_means_no_timeout(tmp_path: Path) -> None:
    assert read_host_options(tmp_path).route_prefix == "api"
    (tmp_path / "host.json").write_text('{"functionTimeout": "-1"}')
    assert read_host_options(tmp_path).function_timeout_s is None


def test_environment_wins_over_local_settings(tmp_path: Path) -> None:
    (tmp_path / "local.settings.json").write_text('{"Values": {"A": "file", "B": "file"}}')
    environment = {"A": "environment"}
    fill_environment(tmp_path, environment)
    assert environment == {"A": "environment", "B": "file"}


def test_references_are_replaced_and_unset_ones_named() -> None:
    assert resolve_references("%ROOM%/{name}", {"ROOM": "documents"}) == "documents/{name}"
    with pytest.raises(SettingError, match="setting ROOM is not set"):
        resolve_references("%ROOM%", {})


@pytest.mark.parametrize(
    ("name", "environment", "expected"),
    [
        ("Docs", {"Docs": "plain"}, "plain"),
        ("Docs", {"Docs": "plain", "AzureWebJobsDocs": "prefixed"}, "prefixed"),
        (None, {"AzureWebJobsStorage": "default"}, "default"),
    ],
)
def test_connection_name_is_resolved(name: str | None, environment: dict[str, str], expected: str) -> None:
    assert storage_connection(name, environment) == expected


def test_function_can_be_switched_off() -> None:
    assert is_disabled("ingest", {"AzureWebJobs.ingest.Disabled": "true"})
    assert not is_disabled("ingest", {})
